package controlplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Build makes sure that the named programs of the [Chosen] release exist, those of [Binaries] if
// none is named, and returns the folder that holds them. What is there already is not built again,
// and of several processes that call Build at once one builds while the others wait.
//
// The folder lies in the user's cache folder and is named after the versions, the platform and a
// hash of the module files. What serves every release is built in the folder of the newest, and
// linked into those of the others. Build needs the go command and this repository's source tree. It reports
// to progress, which may be nil, a line for each program and one every 15 seconds while it builds.
func Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	release, err := Chosen()
	if err != nil {
		return "", err
	}
	return release.Build(ctx, progress, names...)
}

// Build is [Build] for that release, whichever is chosen.
func (r Release) Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	if len(names) == 0 {
		names = Binaries()
	}
	if r == Newest() {
		return r.build(ctx, progress, names)
	}
	var shared, own []string
	for _, name := range names {
		if ofEveryRelease(name) {
			shared = append(shared, name)
		} else {
			own = append(own, name)
		}
	}
	target, err := Newest().build(ctx, progress, shared)
	if err != nil {
		return "", err
	}
	dir, err := r.build(ctx, progress, own)
	if err != nil {
		return "", err
	}
	return dir, link(ctx, progress, target, dir, shared)
}

// link makes the named programs of target stand in dir, too.
func link(ctx context.Context, progress io.Writer, target, dir string, names []string) error {
	linked := func(name string) bool {
		there, err := os.Readlink(filepath.Join(dir, name))
		return err == nil && there == filepath.Join(target, name)
	}
	names = slices.DeleteFunc(names, linked)
	if len(names) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create cache folder: %w", err)
	}
	lock, err := acquire(ctx, filepath.Join(dir, ".lock"), progress)
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, name := range slices.DeleteFunc(names, linked) { // another process may have linked them meanwhile
		partial := filepath.Join(dir, "."+name+".partial")
		_ = os.Remove(partial) // of a process that was killed
		if err := os.Symlink(filepath.Join(target, name), partial); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		if err := os.Rename(partial, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

func (r Release) build(ctx context.Context, progress io.Writer, names []string) (string, error) {
	modules, err := modulesDir()
	if err != nil {
		return "", err
	}
	dir, err := r.cacheDir(modules)
	if err != nil {
		return "", err
	}
	if absent, err := r.missing(dir, names); err != nil || len(absent) == 0 {
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	lock, err := acquire(ctx, filepath.Join(dir, ".lock"), progress)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	absent, err := r.missing(dir, names) // another process may have built them meanwhile
	if err != nil {
		return "", err
	}
	for _, name := range absent {
		if err := r.compile(ctx, progress, lock, modules, dir, name); err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
	}
	return dir, nil
}

// missing returns those of names that dir does not hold.
func (r Release) missing(dir string, names []string) ([]string, error) {
	var absent []string
	for _, name := range names {
		if _, err := r.sourceOf(name); err != nil {
			return nil, err
		}
		switch _, err := os.Stat(filepath.Join(dir, name)); {
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, name)
		case err != nil:
			return nil, fmt.Errorf("look for %s: %w", name, err)
		}
	}
	return absent, nil
}

// modulesDir returns the folder of the nested modules in the source tree this package was compiled
// from.
func modulesDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("locate the source of package controlplane: no caller information")
	}
	dir := filepath.Join(filepath.Dir(file), "modules")
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("locate the modules to build: %w (the control plane is built from this "+
			"repository's source tree; was it moved, or this program built with -trimpath?)", err)
	}
	return dir, nil
}

// cacheDir returns the folder for what the release's modules build.
func (r Release) cacheDir(modules string) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("locate the user's cache folder: %w", err)
	}
	sum, err := r.fingerprint(modules)
	if err != nil {
		return "", fmt.Errorf("hash the modules to build: %w", err)
	}
	versions := "kubernetes-" + r.Version
	if r == Newest() {
		versions += "_etcd-" + EtcdVersion + "_helm-" + HelmVersion + "_containerd-" + ContainerdVersion
	}
	key := fmt.Sprintf("%s_%s-%s_%s", versions, runtime.GOOS, runtime.GOARCH, sum)
	return filepath.Join(user, "runtimeclass-router", "controlplane", key), nil
}

// fingerprint is a short hash of everything that decides what is built: the files of the modules
// and the flags.
func (r Release) fingerprint(modules string) (string, error) {
	own := slices.DeleteFunc(append(Binaries(), NodeBinaries()...), func(name string) bool { return r != Newest() && ofEveryRelease(name) })
	var sources, folders []string
	for _, name := range own {
		src, err := r.sourceOf(name)
		if err != nil {
			return "", err
		}
		sources = append(sources, fmt.Sprintf("%s %+v\n", name, src))
		folders = append(folders, src.module)
	}
	slices.Sort(folders)
	hash := sha256.New()
	for _, folder := range slices.Compact(folders) {
		err := fs.WalkDir(os.DirFS(modules), folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(filepath.Join(modules, path))
			if err != nil {
				return err
			}
			fmt.Fprintf(hash, "%s %d\n%s\n", path, len(content), content)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	fmt.Fprint(hash, strings.Join(sources, ""))
	if r == Newest() {
		fmt.Fprintln(hash, shimTolerant)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:6]), nil
}

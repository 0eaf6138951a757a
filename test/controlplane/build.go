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
)

// Build makes sure that the named programs exist, those of [Binaries] if none is named, and returns
// the folder that holds them. What is there already is not built again, and of several processes
// that call Build at once one builds while the others wait.
//
// The folder lies in the user's cache folder and is named after the versions, the platform and a
// hash of the module files. Build needs the go command and this repository's source tree. It reports
// to progress, which may be nil, a line for each program and one every 15 seconds while it builds.
func Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	if len(names) == 0 {
		names = Binaries()
	}
	modules, err := modulesDir()
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(modules)
	if err != nil {
		return "", err
	}
	if absent, err := missing(dir, names); err != nil || len(absent) == 0 {
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
	absent, err := missing(dir, names) // another process may have built them meanwhile
	if err != nil {
		return "", err
	}
	for _, name := range absent {
		if err := compile(ctx, progress, lock, modules, dir, name); err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
	}
	return dir, nil
}

// missing returns those of names that dir does not hold.
func missing(dir string, names []string) ([]string, error) {
	var absent []string
	for _, name := range names {
		if _, err := sourceOf(name); err != nil {
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

// cacheDir returns the folder for what the given modules build.
func cacheDir(modules string) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("locate the user's cache folder: %w", err)
	}
	sum, err := fingerprint(modules)
	if err != nil {
		return "", fmt.Errorf("hash the modules to build: %w", err)
	}
	key := fmt.Sprintf("kubernetes-%s_etcd-%s_helm-%s_containerd-%s_%s-%s_%s",
		KubernetesVersion, EtcdVersion, HelmVersion, ContainerdVersion, runtime.GOOS, runtime.GOARCH, sum)
	return filepath.Join(user, "runtimeclass-router", "controlplane", key), nil
}

// fingerprint is a short hash of everything that decides what is built: the files of the modules
// and the flags.
func fingerprint(modules string) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(os.DirFS(modules), ".", func(path string, entry fs.DirEntry, err error) error {
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
	for _, name := range append(Binaries(), NodeBinaries()...) {
		src, err := sourceOf(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %+v\n", name, src)
	}
	fmt.Fprintln(hash, shimTolerant)
	return fmt.Sprintf("%x", hash.Sum(nil)[:6]), nil
}

//go:build linux

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The images that nodes have. None comes from a registry: each is one layer with one static program.
const (
	// Image is the product's.
	Image = "localhost/runtimeclass-router:test"
	// BusyBox is what pods of the tests run.
	BusyBox = "localhost/busybox:test"
	// pause is what a sandbox holds on to.
	pause = "localhost/pause:test"
)

// Product is the program that the product's image is made of.
func Product() string { return productIn(images(Scratch())) }

func productIn(dir string) string { return filepath.Join(dir, "runtimeclass-router") }

func images(scratch string) string { return filepath.Join(scratch, "images") }

// writeImages makes the images' archives in a new folder.
func writeImages(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	product := productIn(dir)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", product,
		"github.com/runtimeclass-router/runtimeclass-router/cmd/runtimeclass-router")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the product: %w\n%s", err, out)
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("list the applets of %s: %w", busybox, err)
	}
	names := strings.Fields(string(applets))
	for _, image := range []struct {
		reference, program string
		links              []string
		config             v1.Config
	}{
		{Image, product, nil, v1.Config{User: "65532:65532", Entrypoint: []string{"/bin/runtimeclass-router"}}},
		{BusyBox, busybox, names, v1.Config{Env: []string{"PATH=/bin"}}},
		{pause, busybox, nil, v1.Config{Entrypoint: []string{"/bin/busybox", "sleep", "2147483647"}}},
	} {
		if err := writeImage(dir, image.reference, image.program, image.links, image.config); err != nil {
			return fmt.Errorf("%s: %w", image.reference, err)
		}
	}
	return nil
}

func writeImage(dir, reference, program string, links []string, config v1.Config) error {
	content, err := layer(program, links)
	if err != nil {
		return err
	}
	only, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, only)
	if err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return err
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	archive := strings.NewReplacer("/", "-", ":", "-").Replace(reference) + ".tar"
	return tarball.WriteToFile(filepath.Join(dir, archive), tag, image)
}

// layer is an archive of a program in /bin, links to it, and the folders that a container takes for
// granted.
func layer(program string, links []string) ([]byte, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(program)
	headers := []tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "bin/" + base, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))},
	}
	for _, link := range links {
		if link != base {
			headers = append(headers, tar.Header{Name: "bin/" + link, Typeflag: tar.TypeSymlink, Linkname: base, Mode: 0o777})
		}
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for i := range headers {
		if err := writer.WriteHeader(&headers[i]); err != nil {
			return nil, err
		}
		if headers[i].Size > 0 {
			if _, err := writer.Write(content); err != nil {
				return nil, err
			}
		}
	}
	return archive.Bytes(), writer.Close()
}

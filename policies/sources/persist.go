package sources

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// kept is the file that the last good bundle is kept in. It is the URL's own: another
// URL's bundle is not what is asked for.
func (b *BundleOptions) kept() string {
	sum := sha256.Sum256([]byte(b.URL))
	return filepath.Join(b.PersistDirectory, fmt.Sprintf("bundle-%x.tar.gz", sum[:6]))
}

// persist keeps a bundle as it was sent, in one step.
func (b *BundleOptions) persist(raw []byte) error {
	if kept, err := os.ReadFile(b.kept()); err == nil && bytes.Equal(kept, raw) {
		return nil
	}
	dir, err := b.writable("")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return fmt.Errorf("keep the bundle: %w", err)
	}
	_, err = file.Write(raw)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("keep the bundle: %w", errors.Join(err, os.Remove(file.Name())))
	}
	if err := os.Rename(file.Name(), b.kept()); err != nil {
		return fmt.Errorf("keep the bundle: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// persisted reads the bundle that was kept and verifies it, with the keys of today.
func (b *BundleOptions) persisted() (*bundle.Bundle, error) {
	raw, err := os.ReadFile(b.kept())
	if err != nil {
		return nil, fmt.Errorf("no earlier bundle: %w", err)
	}
	if err := checkUnpacked(raw); err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", b.kept(), err)
	}
	verification, err := b.verification()
	if err != nil {
		return nil, err
	}
	read, err := newReader(bundle.NewTarballLoaderWithBaseURL(bytes.NewReader(raw), ""), verification).Read()
	if err != nil {
		return nil, fmt.Errorf("read bundle %s: %w", b.kept(), err)
	}
	return &read, nil
}

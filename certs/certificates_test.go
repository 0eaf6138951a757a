package certs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/runtimeclass-router/runtimeclass-router/certs"
)

func newDirectory(t *testing.T, files map[string][]byte) (c *certs.Certificates, directory string) {
	t.Helper()
	directory = t.TempDir()
	write(t, directory, files)
	c, err := certs.New(nil, certs.Options{Mode: certs.Directory, Directory: directory}, testr.New(t))
	if err != nil {
		t.Fatal(err)
	}
	return c, directory
}

func TestDirectoryNotReady(t *testing.T) {
	t.Parallel()
	valid, validKey := pemPair(t, -time.Hour, time.Hour)
	_, otherKey := pemPair(t, -time.Hour, time.Hour)
	expired, expiredKey := pemPair(t, -2*time.Hour, -time.Hour)
	future, futureKey := pemPair(t, time.Hour, 2*time.Hour)
	for name, test := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"empty":         {want: "tls.crt: no such file"},
		"no key":        {files: map[string][]byte{"tls.crt": valid}, want: "tls.key: no such file"},
		"not PEM":       {files: map[string][]byte{"tls.crt": []byte("?"), "tls.key": validKey}, want: "failed to find any PEM data"},
		"mismatched":    {files: map[string][]byte{"tls.crt": valid, "tls.key": otherKey}, want: "private key does not match"},
		"expired":       {files: map[string][]byte{"tls.crt": expired, "tls.key": expiredKey}, want: "certificate expired at"},
		"not yet valid": {files: map[string][]byte{"tls.crt": future, "tls.key": futureKey}, want: "not valid before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := newDirectory(t, test.files)
			cause := errors.New("given up")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			err := c.Wait(ctx)
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Wait: %v, want %q because of %q", err, cause, test.want)
			}
			if err := c.Check(nil); err == nil || !strings.Contains(err.Error(), "not ready yet") {
				t.Errorf("Check: %v, want not ready yet", err)
			}
		})
	}
}

func TestDirectoryIsWaitedFor(t *testing.T) {
	t.Parallel()
	c, directory := newDirectory(t, nil)
	done := make(chan error, 1)
	go func() { done <- c.Wait(t.Context()) }()
	select {
	case err := <-done:
		t.Fatalf("Wait with an empty directory: %v, want it to wait", err)
	case <-time.After(50 * time.Millisecond):
	}
	cert, key := pemPair(t, -time.Hour, time.Hour)
	write(t, directory, map[string][]byte{"tls.crt": cert, "tls.key": key})
	if err := <-done; err != nil {
		t.Errorf("Wait: %v", err)
	}
	if err := c.Check(nil); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// TestDirectoryChanges follows a pair that is ready, breaks, expires and is renewed.
func TestDirectoryChanges(t *testing.T) {
	t.Parallel()
	cert, key := pemPair(t, -time.Hour, time.Hour)
	c, directory := newDirectory(t, map[string][]byte{"tls.crt": cert, "tls.key": key})
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	expired, expiredKey := pemPair(t, -2*time.Hour, -time.Hour)
	renewed, renewedKey := pemPair(t, -time.Hour, time.Hour)
	for _, step := range []struct {
		name      string
		cert, key []byte
		want      string // "" is ready
	}{
		{name: "as before", cert: cert, key: key},
		{name: "half renewed", cert: renewed, key: key, want: "does not match"},
		{name: "renewed", cert: renewed, key: renewedKey},
		{name: "expired", cert: expired, key: expiredKey, want: "expired"},
		{name: "renewed again", cert: cert, key: key},
	} {
		write(t, directory, map[string][]byte{"tls.crt": step.cert, "tls.key": step.key})
		err := c.Check(nil)
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("%s: Check: %v, want %q", step.name, err, step.want)
		}
	}
}

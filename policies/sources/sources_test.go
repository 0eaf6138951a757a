package sources

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// patience bounds a wait for what happens at once unless something is broken.
const patience = 30 * time.Second

// run runs a source until the test ends, and returns its deliveries.
func run(t *testing.T, source Source) <-chan Delivery {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	deliveries, ended := make(chan Delivery), make(chan error, 1)
	go func() {
		ended <- source.Run(ctx, func(d Delivery) {
			select {
			case deliveries <- d:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s ended with %v", source.ID(), err)
		}
	})
	return deliveries
}

// await returns the first delivery that is as wanted.
func await(t *testing.T, deliveries <-chan Delivery, wanted func(Delivery) bool) Delivery {
	t.Helper()
	timeout := time.After(patience)
	var last Delivery
	for {
		select {
		case last = <-deliveries:
			if wanted(last) {
				return last
			}
		case <-timeout:
			t.Fatalf("not delivered in %s; the last delivery was %+v", patience, last)
		}
	}
}

// holds is true of a delivery of exactly those files.
func holds(want policies.Modules) func(Delivery) bool {
	return func(d Delivery) bool { return d.Modules != nil && cmp.Equal(want, d.Modules) }
}

// fails is true of a delivery whose error says all of that.
func fails(parts ...string) func(Delivery) bool {
	return func(d Delivery) bool {
		for _, part := range parts {
			if d.Err == nil || !strings.Contains(d.Err.Error(), part) {
				return false
			}
		}
		return true
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	await(t, run(t, NewEmbedded()), holds(policies.Shipped()))
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		source Source
		want   string
	}{
		{NewEmbedded(), "embedded"},
		{NewDirectory("/etc/policy"), "directory /etc/policy"},
		{NewConfigMaps(nil, "router", catalog.PolicyLabelValue), "configMaps router"},
		{NewBundle(BundleOptions{URL: "https://example.com/b.tar.gz"}, discard), "bundle https://example.com/b.tar.gz"},
	} {
		if got := test.source.ID().String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

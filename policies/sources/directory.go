package sources

import (
	"context"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

const (
	// directoryInterval is how often a directory is read. It is not watched: a mounted
	// ConfigMap is swapped by links, at the kubelet's own pace of about a minute.
	directoryInterval = 5 * time.Second
	// directorySettle is how far apart two readings lie that must agree before a change
	// counts, so that files which are copied one after the other arrive together.
	directorySettle = 300 * time.Millisecond
)

// directory is a folder of .rego files.
type directory struct {
	path             string
	interval, settle time.Duration
}

// NewDirectory returns a folder as a source; see [policies.Directory] for what is read.
func NewDirectory(path string) Source {
	return &directory{path: path, interval: directoryInterval, settle: directorySettle}
}

// ID implements [Source].
func (d *directory) ID() ID { return ID{KindDirectory, d.path} }

// Run implements [Source].
func (d *directory) Run(ctx context.Context, deliver func(Delivery)) error {
	delivered := ""
	for {
		modules, err := policies.Directory(d.path)
		state := stateOf(modules, err)
		for last := delivered; state != last; {
			if !sleep(ctx, d.settle) {
				return nil
			}
			last = state
			modules, err = policies.Directory(d.path)
			state = stateOf(modules, err)
		}
		if err != nil {
			deliver(Delivery{Err: err})
		} else {
			deliver(Delivery{Modules: modules})
		}
		delivered = state
		if !sleep(ctx, d.interval) {
			return nil
		}
	}
}

// stateOf is equal for two readings that found the same.
func stateOf(modules policies.Modules, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return digest(modules)
}

package nodeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Options say what to write.
type Options struct {
	// Source says where the handlers come from, for the head of the file.
	Source   string
	Handlers []Handler
	// DefaultRuntime is the handler of pods without a class; "" leaves the node's.
	DefaultRuntime string
	// Binaries are absolute paths by handler: of the runtime, or of its shim where it
	// brings one.
	Binaries map[string]string
	// Files are absolute paths by handler, of what shims read.
	Files map[string]string
	// Snapshotters are containerd's, by handler.
	Snapshotters map[string]string
	// SystemdCgroup: the kubelet's cgroupDriver is systemd. CRI-O keeps that elsewhere.
	SystemdCgroup bool
}

// Config is the file of a node.
type Config struct {
	Text string
	// Notes say what is left to do for it to be whole. Its comments have that too.
	Notes []string
}

// entry is a handler with its runtime. Its names are those of the templates.
type entry struct {
	Handler
	runtime
	Known       bool
	Binary      string
	Snapshotter string
}

// entries joins the handlers with what is known of their runtimes.
func (o *Options) entries() ([]entry, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(o.Handlers))
	for _, h := range o.Handlers {
		r, known := runtimes[h.Family]
		e := entry{Handler: h, runtime: r.forHandler(h.Name), Known: known}
		e.Binary = cmp.Or(o.Binaries[h.Name], r.Shim, r.Command)
		e.File = cmp.Or(o.Files[h.Name], e.File)
		e.Snapshotter = o.Snapshotters[h.Name]
		if e.BlockDevices {
			e.Snapshotter = cmp.Or(e.Snapshotter, "devmapper")
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// NoDevices: privileged containers get no host devices. A class that says so must be
// right, and a guest must not get them in any case.
func (e *entry) NoDevices() bool { return e.Guest || len(e.Withheld) > 0 }

// Unsaid are the classes of a guest that could be labelled host-devices=withheld.
func (e *entry) Unsaid() []string {
	if !e.Guest {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Classes), func(class string) bool { return slices.Contains(e.Withheld, class) })
}

// Pinned: the binary is a path.
func (e *entry) Pinned() bool { return path.IsAbs(e.Binary) }

// validate reports all faults at once. Handlers come from [Handlers] and are sound.
func (o *Options) validate() error {
	known := map[string]runtime{}
	for _, h := range o.Handlers {
		if r, ok := runtimes[h.Family]; ok {
			known[h.Name] = r
		}
	}
	var errs []error
	check := func(what, handler string) bool {
		_, ok := known[handler]
		if !ok {
			errs = append(errs, fmt.Errorf("%s %q: no such handler is configured; those that can be are: %s", what, handler, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
		return ok
	}
	for _, option := range []struct {
		what   string
		values map[string]string
		path   bool
	}{{"binary of", o.Binaries, true}, {"file of", o.Files, true}, {"snapshotter of", o.Snapshotters, false}} {
		for _, handler := range slices.Sorted(maps.Keys(option.values)) {
			value := option.values[handler]
			switch {
			case !check(option.what, handler):
			case value == "" || strings.ContainsFunc(value, unicode.IsControl):
				errs = append(errs, fmt.Errorf("%s %q: %q cannot be one", option.what, handler, value))
			case option.path && !path.IsAbs(value):
				errs = append(errs, fmt.Errorf("%s %q: %q is not an absolute path", option.what, handler, value))
			}
		}
	}
	for _, handler := range slices.Sorted(maps.Keys(o.Files)) {
		if r, ok := known[handler]; ok && r.File == "" {
			errs = append(errs, fmt.Errorf("file of %q: %s reads none", handler, r.Title))
		}
	}
	// runc is there whatever this file says: containerd and CRI-O's package declare it.
	if o.DefaultRuntime != "" && o.DefaultRuntime != "runc" {
		check("default runtime", o.DefaultRuntime)
	}
	return errors.Join(errs...)
}

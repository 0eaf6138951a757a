package nodeconfig

import "fmt"

// The versions of containerd's configuration that can be written. Version 4, of 2.4, moved
// nothing that concerns runtimes.
const (
	containerd1 = 2
	containerd2 = 3
)

// Containerd writes a drop-in for containerd, in version 2 or 3 of its configuration.
func Containerd(o Options, version int) (Config, error) {
	plugin, ok := map[int]string{containerd1: "io.containerd.grpc.v1.cri", containerd2: "io.containerd.cri.v1.runtime"}[version]
	if !ok {
		return Config{}, fmt.Errorf("configuration version %d of containerd: use %d (containerd 1.x, and 2.x converts it) or %d (containerd 2.x)", version, containerd1, containerd2)
	}
	entries, err := o.entries()
	if err != nil {
		return Config{}, err
	}
	text, err := render("containerd.toml.tmpl", page{
		Options: &o, Entries: entries, Version: version, Runtimes: fmt.Sprintf("plugins.'%s'.containerd", plugin),
	})
	return Config{Text: text, Notes: unknown(entries)}, err
}

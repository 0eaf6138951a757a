package nodeconfig

import (
	"fmt"
	"path"
)

// CRIO writes a drop-in for CRI-O.
func CRIO(o Options) (Config, error) {
	entries, err := o.entries()
	if err != nil {
		return Config{}, err
	}
	notes := unknown(entries)
	for i := range entries {
		e := &entries[i]
		if e.Known && !e.Pinned() {
			e.Binary = path.Join("/usr/local/bin", e.Binary) // CRI-O looks up handlers, not their binaries
		}
		if e.BlockDevices && e.Name == o.DefaultRuntime {
			return Config{}, fmt.Errorf("default runtime %q: CRI-O cannot run %s", e.Name, e.Title)
		}
		if e.BlockDevices {
			notes = append(notes, fmt.Sprintf("handler %s: CRI-O has no storage that gives %s its images as block devices: its table is a comment", e.Name, e.Title))
		}
		e.Packaged = e.Packaged && o.Binaries[e.Name] == ""
	}
	text, err := render("crio.conf.tmpl", page{Options: &o, Entries: entries})
	return Config{Text: text, Notes: notes}, err
}

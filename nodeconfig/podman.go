package nodeconfig

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Podman says what to pass to podman for each handler. Podman is no CRI, so there is no
// file to write, and no shim: a binary is the runtime itself.
func Podman(o Options) (Config, error) {
	if _, err := o.entries(); err != nil {
		return Config{}, err
	}
	var text strings.Builder
	text.WriteString(`Podman serves no kubelet, so it offers Kubernetes no handler. For containers that it runs by
itself, it calls any runtime that is called as runc is:

`)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "HANDLER\tPODMAN")
	for _, h := range o.Handlers {
		r, known := runtimes[h.Family]
		switch {
		case !known:
			fmt.Fprintf(table, "%s\tnot known here; --runtime PATH if it is called as runc is\n", h.Name)
		case r.Command == "":
			fmt.Fprintf(table, "%s\tnone: since version 2 Kata Containers speak the API of shims only\n", h.Name)
		default:
			fmt.Fprintf(table, "%s\tpodman run --runtime %s\n", h.Name, cmp.Or(o.Binaries[h.Name], r.Command))
		}
	}
	err := table.Flush()
	return Config{Text: text.String()}, err
}

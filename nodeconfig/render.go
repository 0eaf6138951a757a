package nodeconfig

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

// page is what a template is filled in with.
type page struct {
	*Options
	Entries []entry
	Version int
	// Runtimes is containerd's table of runtimes.
	Runtimes string
}

func render(name string, p page) (string, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"quote": quote, "join": strings.Join}).
		Option("missingkey=error").ParseFS(templates, name)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, p); err != nil {
		return "", fmt.Errorf("write %s: %w", strings.TrimSuffix(name, ".tmpl"), err)
	}
	return text.String(), nil
}

// quote makes a basic string of TOML, whose escapes are JSON's.
func quote(s string) (string, error) {
	quoted, err := json.Marshal(s)
	return string(quoted), err
}

// unknown says which handlers are left as comments.
func unknown(entries []entry) (notes []string) {
	for _, e := range entries {
		if !e.Known {
			notes = append(notes, fmt.Sprintf("handler %s (runtime class %s) is not known here: its table is a comment, fill in what its guide says", e.Name, strings.Join(e.Classes, ", ")))
		}
	}
	return notes
}

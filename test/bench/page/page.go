package page

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

//go:embed page.md.tmpl
var source string

// Write writes the page to a path that ends in .md, and its plots into the folder of the
// same name without that. It returns the table of goals. Either all of it is written, or
// what was there stays.
func Write(path string, r *results.Results) (goals string, err error) {
	folder, ok := strings.CutSuffix(path, ".md")
	if !ok {
		return "", fmt.Errorf("the page %s: its name must end in .md", path)
	}
	plots, err := plot(r)
	if err != nil {
		return "", err
	}
	rendered, goals, err := Render(r, filepath.Base(folder), plots)
	if err != nil {
		return "", err
	}
	files := map[string][]byte{path: rendered}
	for name, content := range plots {
		files[filepath.Join(folder, name)] = content
	}
	if len(plots) > 0 {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
	}
	if err := writeAll(files); err != nil {
		return "", err
	}
	return goals, removeOthers(folder, files)
}

// Render makes the page's text. The plots, by name, lie in that folder beside it.
func Render(r *results.Results, folder string, plots map[string][]byte) (page []byte, goals string, err error) {
	judged := judge(r)
	t, err := template.New("page").Funcs(template.FuncMap{
		"ms": milliseconds, "mb": megabytes, "ratio": ratio, "rate": rate, "percent": percent, "thousands": results.Thousands,
		"twice":    func(n int) string { return results.Thousands(2 * n) },
		"fourfold": func(n int) string { return results.Thousands(4 * n) },
		"calls":    func(n float64) string { return fmt.Sprintf("%.1f", n) },
		"plot": func(name string) string {
			if _, drawn := plots[name+".svg"]; !drawn {
				return ""
			}
			return folder + "/" + name + ".svg"
		},
	}).Parse(source)
	if err != nil {
		return nil, "", err
	}
	var rendered, table bytes.Buffer
	data := struct {
		*results.Results
		Goals    []goal
		Through  []throughRow
		Straight []straightRow
		Burst    []burstRow
		Growth   []growthTable
	}{r, judged, throughRows(r), straightRows(r), burstRows(r), growthTables(r)}
	if err := t.Execute(&rendered, data); err != nil {
		return nil, "", err
	}
	err = t.ExecuteTemplate(&table, "goals", data)
	return rendered.Bytes(), strings.TrimLeft(table.String(), "\n"), err
}

// writeAll writes every file beside its place before it puts the first one there.
func writeAll(files map[string][]byte) (err error) {
	var written []string
	defer func() {
		if err != nil {
			for _, path := range written {
				err = errors.Join(err, os.Remove(path+".new"))
			}
		}
	}()
	for path, content := range files {
		if err := os.WriteFile(path+".new", content, 0o644); err != nil {
			return err
		}
		written = append(written, path)
	}
	for len(written) > 0 {
		if err := os.Rename(written[0]+".new", written[0]); err != nil {
			return err
		}
		written = written[1:]
	}
	return nil
}

// removeOthers removes plots of an earlier run that this one has not drawn.
func removeOthers(folder string, files map[string][]byte) error {
	drawn, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil {
		return err
	}
	for _, path := range drawn {
		if _, ours := files[path]; !ours {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

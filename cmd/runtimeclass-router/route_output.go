package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	jsonpatchapply "github.com/evanphx/json-patch/v5"

	"gomodules.xyz/jsonpatch/v2"
)

// routeWriters are the formats of --output.
var routeWriters = map[string]func(io.Writer, []result) error{
	"table": writeTable,
	"json":  writeJSON,
	"yaml":  writeYAML,
}

// whyWidth is what the other columns and the padding leave for the explanation.
const whyWidth = tableWidth - 22 - 12 - 10 - 18 - 2*5

func writeTable(out io.Writer, results []result) error {
	t := newTable(out, table.Row{"workload", "namespace", "trust", "result", "why"}, 22, 12, 10, 18)
	for _, r := range results {
		if r.Err != nil {
			t.AppendRow(table.Row{r.Kind + "/" + r.Name, r.Namespace, "", "error", paragraphs(r.Err.Error())})
			continue
		}
		why := slices.Clone(r.Reasons)
		for _, w := range r.Warnings {
			why = append(why, "warning: "+w)
		}
		t.AppendRow(table.Row{r.Kind + "/" + r.Name, r.Namespace, r.Trust, r.Outcome(), paragraphs(why...)})
	}
	t.Render()
	return nil
}

// paragraphs wraps each line on its own.
func paragraphs(lines ...string) string {
	wrapped := make([]string, 0, len(lines))
	for _, line := range lines {
		wrapped = append(wrapped, text.WrapSoft(line, whyWidth))
	}
	return strings.Join(wrapped, "\n")
}

func writeJSON(out io.Writer, results []result) error {
	decided := []result{}
	for _, r := range results {
		if r.Err == nil {
			decided = append(decided, r.filled())
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(decided)
}

// filled has empty lists and maps where there is nothing, so that a reader of the
// JSON need not tell null from empty.
func (r result) filled() result {
	if r.NodeSelector == nil {
		r.NodeSelector = map[string]string{}
	}
	if r.Tolerations == nil {
		r.Tolerations = []corev1.Toleration{}
	}
	if r.Overhead == nil {
		r.Overhead = corev1.ResourceList{}
	}
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	if r.Patch == nil {
		r.Patch = []jsonpatch.Operation{}
	}
	return r
}

// writeYAML prints pods and workloads as they would run; what is denied is left out,
// with a comment in its place.
func writeYAML(out io.Writer, results []result) error {
	for _, r := range results {
		if r.Err != nil {
			continue
		}
		if r.denied() {
			if _, err := fmt.Fprintf(out, "---\n# %s %s/%s is denied: %s\n", r.Kind, r.Namespace, r.Name, strings.Join(r.Reasons, "; ")); err != nil {
				return err
			}
			continue
		}
		mutated, err := r.mutated()
		if err != nil {
			return fmt.Errorf("%s %s/%s: %w", r.Kind, r.Namespace, r.Name, err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", mutated); err != nil {
			return err
		}
	}
	return nil
}

// mutated applies the patch to the manifest, for a workload below its template.
func (r *result) mutated() ([]byte, error) {
	operations := make([]jsonpatch.Operation, 0, len(r.Patch))
	for _, op := range r.Patch {
		op.Path = r.Template.Pointer() + op.Path
		operations = append(operations, op)
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatchapply.DecodePatch(raw)
	if err != nil {
		return nil, err
	}
	options := jsonpatchapply.NewApplyOptions()
	options.EnsurePathExistsOnAdd = true // a template may have no metadata
	patched, err := patch.ApplyWithOptions(r.Document.Raw, options)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(patched)
}

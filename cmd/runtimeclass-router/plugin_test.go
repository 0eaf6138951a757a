package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestInvokedAs: the name that the program is started by decides how it speaks of itself.
func TestInvokedAs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		argv []string
		want []string
	}{
		{[]string{"/usr/bin/runtimeclass-router", "route", "--help"}, []string{"\n  runtimeclass-router route -f FILE...", "\n  runtimeclass-router route -f examples/", "| runtimeclass-router route -f -"}},
		{[]string{"/k/kubectl-runtimeclass_router", "route", "--help"}, []string{"\n  kubectl runtimeclass-router route -f FILE...", "\n  kubectl runtimeclass-router route -f examples/", "| kubectl runtimeclass-router route -f -"}},
		{[]string{"kubectl-runtimeclass_router.exe", "cleanup", "--help"}, []string{"\n  kubectl runtimeclass-router cleanup NAME", "\n  kubectl runtimeclass-router cleanup runtimeclass-router\n"}},
		{[]string{"kubectl-runtimeclass_router", "--help"}, []string{`Use "kubectl runtimeclass-router [command] --help"`}},
		{[]string{"kubectl-runtimeclass_router", "completion", "bash"}, []string{`unknown command "completion" for "kubectl runtimeclass-router"`}},
		{[]string{"runtimeclass-router", "completion", "bash"}, []string{"__start_runtimeclass-router"}},
		{[]string{"/k/kubectl_complete-runtimeclass_router", "node-c"}, []string{"node-config\tPrint what makes a node offer", ":4"}},
		{[]string{"kubectl_complete-runtimeclass_router", "node-config", "--cri", ""}, []string{"containerd\n", "podman\n"}},
	} {
		t.Run(strings.Join(test.argv, " "), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			root := newCommand()
			root.SetOut(&out)
			root.SetErr(&out)
			invokedAs(root, test.argv)
			if err := root.ExecuteContext(t.Context()); err != nil {
				fmt.Fprintln(&out, err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}

// krewPlugin has the fields of Krew's manifests, by its pkg/index/types.go.
type krewPlugin struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Homepage         string         `json:"homepage"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	URI      string               `json:"uri"`
	SHA256   string               `json:"sha256"`
	Selector metav1.LabelSelector `json:"selector"`
	Bin      string               `json:"bin"`
}

// krewManifest is .krew.yaml as krew-release-bot fills it in for v1.2.3: addURIAndSha
// gives two lines, the second of which it indents by four.
func krewManifest(t *testing.T) *krewPlugin {
	t.Helper()
	source, err := os.ReadFile("../../.krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fill := func(name, text string, functions template.FuncMap) string {
		var filled bytes.Buffer
		parsed, err := template.New(name).Funcs(functions).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := parsed.Execute(&filled, map[string]string{"TagName": "v1.2.3"}); err != nil {
			t.Fatal(err)
		}
		return filled.String()
	}
	manifest := fill(".krew.yaml", string(source), template.FuncMap{"addURIAndSha": func(uri, _ string) string {
		return "uri: " + fill("uri", uri, nil) + "\n    sha256: " + strings.Repeat("a", 64)
	}})
	plugin := &krewPlugin{}
	if err := yaml.UnmarshalStrict([]byte(manifest), plugin); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	return plugin
}

// TestKrewManifest holds .krew.yaml to what Krew asks of a manifest
// (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/, and its naming guide),
// and to the archives of `make dist`.
func TestKrewManifest(t *testing.T) {
	t.Parallel()
	plugin := krewManifest(t)
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Spec.Version != "v1.2.3" {
		t.Errorf("it is %s %s, version %q", plugin.APIVersion, plugin.Kind, plugin.Spec.Version)
	}
	if want := "kubectl-" + strings.ReplaceAll(plugin.Metadata.Name, "-", "_"); want != pluginFile || pluginCommand != "kubectl "+plugin.Metadata.Name {
		t.Errorf("Krew links %s, and the program knows itself as %s", want, pluginFile)
	}
	if short := plugin.Spec.ShortDescription; short == "" || len(short) > 50 || strings.ContainsAny(short, "\n.") || strings.Contains(strings.ToLower(short), "kubectl") {
		t.Errorf("short description %q: want 50 characters at most, without a full stop or kubectl", short)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	built := regexp.MustCompile(`(?m)^PLATFORMS := (.+)$`).FindSubmatch(makefile)
	if built == nil {
		t.Fatal("the Makefile has no PLATFORMS")
	}
	var platforms []string
	for _, p := range plugin.Spec.Platforms {
		labels := p.Selector.MatchLabels
		if keys := slices.Sorted(maps.Keys(labels)); !slices.Equal(keys, []string{"arch", "os"}) {
			t.Fatalf("selector by %v", keys)
		}
		platforms = append(platforms, labels["os"]+"/"+labels["arch"])
		uri := fmt.Sprintf("%s/releases/download/v1.2.3/runtimeclass-router_%s_%s.tar.gz", plugin.Spec.Homepage, labels["os"], labels["arch"])
		bin := map[bool]string{true: "runtimeclass-router.exe", false: "runtimeclass-router"}[labels["os"] == "windows"]
		if p.URI != uri || p.Bin != bin || len(p.SHA256) != 64 {
			t.Errorf("%v: %s in %s, sum %q; want %s in %s", labels, p.Bin, p.URI, p.SHA256, bin, uri)
		}
	}
	if diff := cmp.Diff(strings.Fields(string(built[1])), platforms); diff != "" {
		t.Errorf("platforms of the Makefile (-) and of .krew.yaml (+):\n%s", diff)
	}
}

// TestPluginExamples: no example keeps the program's own name as a plugin.
func TestPluginExamples(t *testing.T) {
	t.Parallel()
	root := newCommand()
	asPlugin(root)
	everyCommand(root, func(cmd *cobra.Command) {
		if found := calls(cmd.Example); len(found) > 0 {
			t.Errorf("%s: an example calls the program by its own name: %v", cmd.CommandPath(), found)
		}
	})
}

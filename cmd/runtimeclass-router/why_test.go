package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// answeringRevision is the revision of the policy that answers, by the flags that name it.
func answeringRevision(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := run(t, "", append([]string{"why", "-f", "testdata/why/denied.yaml", "-o", "json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var report whyReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Policy.Revision == "" {
		t.Fatalf("%v\n%s", err, out)
	}
	return report.Policy.Revision
}

// TestWhy is golden for a pod that was routed, one that was denied and then fixed, one that
// an exception covers, one in a namespace that nobody looks at, and one that has drifted.
func TestWhy(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"routed":   {"web-5d4f-x2x9k"},
		"denied":   {"deploy/logs", "-n", "shop"},
		"fixed":    {"--cluster", "cluster.yaml"},
		"exempted": {"--config", "testdata/why/exempted.config.yaml"},
		"exempt":   nil,
		"drifted":  {"pod/web-5d4f-x2x9k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var policy []string
			if len(args) > 0 && args[0] == "--config" {
				policy = args
			}
			revision := answeringRevision(t, policy...)
			raw, err := os.ReadFile("testdata/why/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			manifest := strings.ReplaceAll(string(raw), "REVISION", revision)
			out, errOut, err := run(t, manifest, append([]string{"why", "-f", "-"}, args...)...)
			if err != nil || errOut != "" {
				t.Fatalf("%v\n%s", err, errOut)
			}
			golden(t, "../why/"+name, strings.ReplaceAll(out, revision, "REVISION"))
			if name != "drifted" {
				return
			}
			out, _, err = run(t, manifest, append([]string{"why", "-f", "-", "-o", "json"}, args...)...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "../why/"+name+".json", strings.ReplaceAll(out, revision, "REVISION"))
		})
	}
}

// TestWhyOfAPolicyError says what was found out before it, and how the next pod fares.
func TestWhyOfAPolicyError(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, sandboxPod, "why", "-f", "-", "--policy", brokenPolicies+"/below-the-floor")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"today   POLICY ERROR", "/below-the-floor/custom.rego:3", "trust   untrusted", "policy  --policy "} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

// TestWhyOfForgedAnnotations: a tenant may have written them, and what they say does not get
// to the terminal as more than text.
func TestWhyOfForgedAnnotations(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/why/routed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	forged := regexp.MustCompile(`(?m)(runtimeclass-router.io/(trust|reason|policy-revision)): .*$`).
		ReplaceAllString(strings.ReplaceAll(string(raw), "labels: {runtimeclass-router.io/trust: untrusted, ", "labels: {'runtimeclass-router.io/trust': untrusted, "), `$1: "\e[2J\ntoday   crun"`)
	out, _, err := run(t, forged, "why", "-f", "-")
	if err != nil || strings.Contains(out, "\x1b") || strings.Contains(out, "\ntoday   crun") || !strings.Contains(out, "\ntoday   gvisor") || !strings.Contains(out, "[2J\ufffdtoday") {
		t.Errorf("%v\n%q", err, out)
	}
}

func TestWhyRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, "name a pod"},
		"another kind":    {[]string{"svc/web"}, "KIND/NAME with one of the kinds po, deploy, sts"},
		"no name":         {[]string{"deploy/"}, "KIND/NAME"},
		"not there":       {[]string{"deploy/web", "-f", "testdata/why/routed.yaml"}, "0 pods and workloads"},
		"elsewhere":       {[]string{"-n", "other", "-f", "testdata/why/routed.yaml"}, "0 pods and workloads"},
		"several":         {[]string{"-f", "testdata/why/routed.yaml", "-f", "testdata/why/denied.yaml"}, "2 pods and workloads"},
		"format":          {[]string{"web", "-o", "yaml"}, "use text or json"},
		"a broken policy": {[]string{"-f", "testdata/why/routed.yaml", "--policy", brokenPolicies + "/http-send"}, "custom.rego:4:12"},
		"cluster":         {[]string{"-f", "testdata/why/routed.yaml", "--cluster", "no-such-file"}, "--cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := run(t, "", append([]string{"why"}, test.args...)...)
			if status(err) != 1 || !strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("want %q, got %v\n%s", test.want, err, out)
			}
		})
	}
}

// TestWhyNames: what kubectl calls a kind is understood.
func TestWhyNames(t *testing.T) {
	t.Parallel()
	for _, a := range askables {
		for _, name := range a.names {
			w, err := parseWanted([]string{strings.ToUpper(name) + "/x"})
			if err != nil || w.kind.kind != a.kind || w.name != "x" {
				t.Errorf("%s: %v %v", name, w, err)
			}
		}
		if plural := a.names[len(a.names)-1]; !regexp.MustCompile(`^[a-z]+s$`).MatchString(plural) {
			t.Errorf("%s is no resource", plural)
		}
	}
}

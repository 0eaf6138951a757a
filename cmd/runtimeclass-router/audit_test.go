package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
)

const auditPods = "testdata/audit/pods.yaml"

// TestAuditFormats are golden.
func TestAuditFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json"} {
		out, errOut, err := run(t, "", "audit", "-f", auditPods, "-o", format)
		if err != nil || errOut != "" {
			t.Errorf("%v\n%s", err, errOut)
		}
		golden(t, "../audit/pods."+format, out)
	}
}

func TestAuditExitStatus(t *testing.T) {
	t.Parallel()
	const exceptions = `apiVersion: runtimeclass-router.io/v1alpha1
kind: RouterConfiguration
router:
  exceptions:
  - {name: e, namespaces: [shop], runtimeClassName: crun, owner: a, ticket: b, reason: c, until: "UNTIL"}
`
	config := func(until string) string {
		file := t.TempDir() + "/config.yaml"
		writeFile(t, file, strings.Replace(exceptions, "UNTIL", until, 1))
		return file
	}
	for name, test := range map[string]struct {
		args []string
		want int
		says string
	}{
		"nothing asked":     {nil, 0, "9 pods: 5 below-floor, 1 would-be-denied, 0 policy-error, 2 drifted; left out: 1 exempt, 1 mirror, 2 finished, 1 unborn"},
		"below the floor":   {[]string{"--fail-on", "below-floor"}, 2, "5 below-floor"},
		"any":               {[]string{"--fail-on", "any"}, 2, "2 drifted"},
		"what is enforced":  {[]string{"--enforced"}, 0, "7 of 9 pods: 4 below-floor"},
		"a live exception":  {[]string{"--config", config("2199-12-31")}, 0, "7 of 9 pods: 3 below-floor"},
		"one that is over":  {[]string{"--config", config("2020-01-01")}, 0, "8 of 9 pods: 5 below-floor"},
		"a policy error":    {[]string{"--policy", brokenPolicies + "/below-the-floor"}, 0, "policy-error"},
		"nothing is exempt": {[]string{"--exempt-namespaces", "none"}, 0, "6 below-floor"},
		"another policy":    {[]string{"--policy", diffPolicy}, 0, "drifted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, err := run(t, "", append([]string{"audit", "-f", auditPods}, test.args...)...)
			if status(err) != test.want || !strings.Contains(out, test.says) {
				t.Errorf("status %d, want %d and %q: %v\n%s%s", status(err), test.want, test.says, err, out, errOut)
			}
		})
	}
	// As it should be: nothing to fail on.
	out, _, err := run(t, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Running"}}`,
		"audit", "-f", "-", "--enforced", "--fail-on", "any")
	if err != nil || out != "0 of 1 pods: 0 below-floor, 0 would-be-denied, 0 policy-error, 0 drifted\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAuditRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":           {nil, "nothing to look at"},
		"a format":          {[]string{"-f", auditPods, "-o", "yaml"}, "use table, json or report"},
		"a kind":            {[]string{"-f", auditPods, "--fail-on", "drifted"}, "use below-floor or any"},
		"a filter":          {[]string{"-f", auditPods, "-n", "shop"}, "leave out -f"},
		"reports of files":  {[]string{"-f", auditPods, "-o", "report"}, "leave out -f and -l"},
		"reports of a part": {[]string{"--context", "c", "-l", "a=b", "-o", "report"}, "leave out -f and -l"},
		"a selector":        {[]string{"--context", "c", "-l", "a in"}, "--selector"},
		"an absent file":    {[]string{"-f", "testdata/absent.yaml"}, "no such file"},
		"a broken policy":   {[]string{"-f", auditPods, "--policy", brokenPolicies + "/unknown-pod-field"}, "--policy: " + brokenPolicies + "/unknown-pod-field/custom.rego:3:26: "},
		"no such context":   {[]string{"--context", "absent"}, "find the cluster"},
	} {
		if _, _, err := run(t, "", append([]string{"audit"}, test.args...)...); status(err) != 1 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v", name, test.want, err)
		}
	}
}

// TestAuditLooksAtTheRest beside a broken document.
func TestAuditLooksAtTheRest(t *testing.T) {
	t.Parallel()
	pods, err := os.ReadFile(auditPods)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, "kind: Pod\nmetadata: {name: broken\n---\n"+string(pods), "audit", "-f", "-", "--fail-on", "any")
	if status(err) != 1 || !strings.Contains(err.Error(), "-: document 1 (line 1)") || !strings.Contains(out, "8 of 9 pods") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAuditOfAGeneratedCluster: of 1,000 pods, from a file and live, exactly those are
// found whose namespaces are labelled otherwise than when they were routed.
func TestAuditOfAGeneratedCluster(t *testing.T) {
	t.Parallel()
	const n = 1000
	pods := generatedPods(t, n)
	// The node's default for what the webhook has not routed, and a job has ended.
	want := audit.Report{LeftOut: map[string]int{}, Found: map[audit.Kind]int{}}
	for i := range n {
		g := generate(i)
		switch {
		case g.shape() == "job":
			want.LeftOut[audit.Finished]++
			continue
		case g.routed(), g.kind() == 0 && g.shape() == "agent": // a trusted DaemonSet is left alone
		case g.kind() == 0:
			want.Found[audit.Drifted]++ // trusted: crun is chosen today
		default:
			want.Found[audit.BelowFloor]++
		}
		want.Pods++
	}
	for name, from := range map[string][]string{
		"file": {"-f", writePodList(t, pods)},
		"live": {"--kubeconfig", (&pagingServer{pods: pods}).kubeconfig(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, err := run(t, "", append([]string{"audit", "-o", "json"}, from...)...)
			if err != nil || errOut != "" {
				t.Fatalf("%v\n%s", err, errOut)
			}
			var got audit.Report
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			listed := 0
			for i := range got.Findings {
				listed += got.Findings[i].Pods
			}
			if all := got.Found[audit.Drifted] + got.Found[audit.BelowFloor]; listed != all {
				t.Errorf("%d pods are listed, and %d found", listed, all)
			}
			if got.Pods != want.Pods || !cmp.Equal(want.LeftOut, got.LeftOut) || !cmp.Equal(want.Found, got.Found) {
				t.Errorf("got %d pods, %v found, left out %v; want %d, %v, %v", got.Pods, got.Found, got.LeftOut, want.Pods, want.Found, want.LeftOut)
			}
		})
	}
}

// TestAuditOfAClusterWithoutReports says which are missing, and what else to ask for.
func TestAuditOfAClusterWithoutReports(t *testing.T) {
	t.Parallel()
	server := &pagingServer{pods: generatedPods(t, 10)}
	out, _, err := run(t, "", "audit", "--kubeconfig", server.kubeconfig(t), "-o", "report")
	for _, want := range []string{"reports.openreports.io", "policyreports.wgpolicyk8s.io", "-o table and -o json"} {
		if status(err) != 1 || out != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v\n%s", want, err, out)
		}
	}
	if len(server.requests) > 0 {
		t.Error("pods were listed first")
	}
}

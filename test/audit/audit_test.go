package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// The pods are in these many namespaces; each second one is trusted when they are made.
const namespaces = 12

func space(i int) string { return fmt.Sprintf("space-%02d", i) }

// relabelled are the namespaces whose trust changes afterwards, with what is found then.
var relabelled = map[int]struct {
	trust string
	kind  audit.Kind
}{
	0: {"untrusted", audit.BelowFloor},
	4: {"untrusted", audit.BelowFloor},
	7: {"trusted", audit.Drifted},
}

// TestAudit runs its steps in order.
func TestAudit(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"drift", drift},
		{"reports", reports},
		{"one replica scans", oneScans},
		{"evictions", evictions},
	} {
		if !t.Run(step.name, step.run) && step.name == "drift" {
			return // the others would fail for its reasons
		}
	}
}

// drift: of pods that the webhook routed, exactly those are found whose namespaces were
// relabelled since.
func drift(t *testing.T) {
	start := time.Now()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range namespaces {
		trust := []string{"trusted", "untrusted"}[i%2]
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space(i), Labels: map[string]string{catalog.LabelTrust: trust}}}
		if err := shared.CreateNamespace(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]audit.Kind{}
	for i := range *pods {
		of := i % namespaces
		name := fmt.Sprintf("pod-%05d", i)
		if to, ok := relabelled[of]; ok {
			want[space(of)+"/"+name] = to.kind
		}
		group.Go(func() error {
			// A busy machine may take longer than the API server waits for the webhook.
			return retry.OnError(retry.DefaultBackoff, apierrors.IsInternalError, func() error {
				_, err := clients.CoreV1().Pods(space(of)).Create(t.Context(), pod(name), metav1.CreateOptions{})
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for of, to := range relabelled {
		label(t, space(of), to.trust)
	}
	t.Logf("%d pods were created in %s", *pods, time.Since(start).Round(time.Second))
	report := command(t, "-o", "json")
	found := map[string]audit.Kind{}
	for i := range report.Findings {
		f := &report.Findings[i]
		if f.Pods != 1 || len(f.Names) != 1 {
			t.Errorf("%s: %d pods, %v", f.Owner, f.Pods, f.Names)
		}
		found[f.Namespace+"/"+f.Names[0]] = f.Kind
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if report.Pods != *pods {
		t.Errorf("%d pods were looked at, of %d", report.Pods, *pods)
	}
}

// pod is one that no scheduler binds.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: "nobody", TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/" + name[:3]}},
	}}
}

// label sets a namespace's trust, and waits until the webhook goes by it.
func label(t *testing.T, namespace, trust string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, catalog.LabelTrust, trust)
	if _, err := clients.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// command runs the command over the cluster, and logs what it takes.
func command(t *testing.T, args ...string) *audit.Report {
	t.Helper()
	out, errOut, status := output(t, args...)
	if status != 0 {
		t.Fatalf("status %d: %s", status, errOut)
	}
	report := &audit.Report{}
	if err := json.Unmarshal([]byte(out), report); err != nil {
		t.Fatal(err)
	}
	return report
}

func output(t *testing.T, args ...string) (out, errOut string, status int) {
	t.Helper()
	start := time.Now()
	cmd := shared.Command(t.Context(), append([]string{"audit", "--kubeconfig", shared.KubeconfigPath}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := stack.PeakMemory(cmd.Process.Pid)
	var ended *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	t.Logf("audit %s: %s, %.1f s of processor, at most %.0f MB", strings.Join(args, " "), time.Since(start).Round(10*time.Millisecond),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), peak/1e3)
	// Some pages of pods, a policy, and what the collector leaves: not what all pods would take.
	if peak == 0 || peak > 300e3 {
		t.Errorf("it took %.0f MB", peak/1e3)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// reports are written by the API that there is, and removed with the findings.
func reports(t *testing.T) {
	out, errOut, status := output(t, "-o", "report")
	if status != 1 || out != "" || !strings.Contains(errOut, "reports.openreports.io") || !strings.Contains(errOut, "policyreports.wgpolicyk8s.io") {
		t.Errorf("without a CRD: status %d\n%s%s", status, out, errOut)
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	openreports, older, _ := strings.Cut(string(raw), "\n---\n")
	for _, api := range []struct{ crd, resource string }{
		{older, "policyreports.wgpolicyk8s.io"},
		{openreports, "reports.openreports.io"}, // which wins where both are
	} {
		if _, err := shared.KubectlInput(t.Context(), strings.NewReader(api.crd), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd/"+api.resource, "--timeout=1m"); err != nil {
			t.Fatal(err)
		}
		label(t, space(4), relabelled[4].trust)
		poll(t, func() string { return errOut }, func(context.Context) (bool, error) {
			out, errOut, status = output(t, "-o", "report")
			return status == 0, nil // the discovery of a new CRD takes a moment
		})
		for of := range relabelled {
			checkReport(t, api.resource, of)
			if want := fmt.Sprintf("%s/%s/runtimeclass-router-audit\n", api.resource, space(of)); !strings.Contains(out, want) {
				t.Errorf("the output lacks %s:\n%s", want, out)
			}
		}
		if got := reported(t, api.resource); len(got) != len(relabelled) {
			t.Errorf("reports in %v", got)
		}
		// The same again changes nothing, and what is not found any more goes.
		before := versions(t, api.resource)
		output(t, "-o", "report", "-n", space(0))
		if diff := cmp.Diff(before, versions(t, api.resource)); diff != "" {
			t.Errorf("a second time (-before +after)\n%s", diff)
		}
		label(t, space(4), "trusted")
		output(t, "-o", "report")
		if got := reported(t, api.resource); len(got) != 2 || strings.Contains(strings.Join(got, " "), space(4)) {
			t.Errorf("reports in %v after %s is trusted again", got, space(4))
		}
	}
}

// checkReport holds a report to what is found in a namespace.
func checkReport(t *testing.T, resource string, of int) {
	t.Helper()
	raw, err := shared.Kubectl(t.Context(), "get", resource, "runtimeclass-router-audit", "-n", space(of), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata metav1.ObjectMeta
		Scope    corev1.ObjectReference
		Summary  map[string]int
		Results  []struct {
			Rule, Severity, Result string
			Resources              []corev1.ObjectReference
		}
	}
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	n := *pods / namespaces
	if got.Metadata.Labels["app.kubernetes.io/managed-by"] != "runtimeclass-router" || got.Scope.Kind != "Namespace" || got.Scope.Name != space(of) {
		t.Errorf("%s: labels %v, scope %v", space(of), got.Metadata.Labels, got.Scope)
	}
	if got.Summary["fail"] < n || got.Summary["pass"] != 0 || len(got.Results) < min(n, 300) || len(got.Results) > 301 {
		t.Errorf("%s: summary %v, %d results, want %d failed", space(of), got.Summary, len(got.Results), n)
	}
	first := got.Results[0]
	if kind := relabelled[of].kind; first.Rule != string(kind) || first.Result != "fail" || first.Severity != kind.Severity() || len(first.Resources) != 1 {
		t.Errorf("%s: first result %+v", space(of), first)
	}
}

// reported are the namespaces with a report.
func reported(t *testing.T, resource string) []string {
	t.Helper()
	out, err := shared.Kubectl(t.Context(), "get", resource, "-A", "-o", `jsonpath={.items[*].metadata.namespace}`)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out)
}

func versions(t *testing.T, resource string) string {
	t.Helper()
	out, err := shared.Kubectl(t.Context(), "get", resource, "-A", "-o", `jsonpath={.items[*].metadata.resourceVersion}`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

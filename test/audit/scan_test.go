package audit

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// often has a router scan as often as it may, with the chart's rights.
func often(t *testing.T, r *stack.Router) {
	t.Helper()
	err := r.Configure(func(config map[string]any) {
		section := config["audit"].(map[string]any)
		section["interval"], section["podsPerSecond"] = "10s", 5000
	})
	if err != nil {
		t.Fatal(err)
	}
}

// value is that of a metric with those labels; false where there is none.
func value(t *testing.T, r *stack.Router, metric string) (float64, bool) {
	t.Helper()
	text, err := r.Metrics(t.Context())
	if err != nil {
		return 0, false // it does not run
	}
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(metric) + ` (\S+)$`).FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	number, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return number, true
}

const (
	belowFloor = `runtimeclass_router_audit_pods{finding="below-floor",mode="enforce"}`
	success    = `runtimeclass_router_audit_last_success_timestamp_seconds`
)

// oneScans: of two replicas one tells of pods, and the other when it is gone. Neither
// needs the lease to serve.
func oneScans(t *testing.T) {
	deploy(t, "shop", 3)  // for the evictions, which leave young pods alone
	deploy(t, "quiet", 1) // which is not enforced
	if err := shared.Router.Stop(); err != nil {
		t.Fatal(err)
	}
	second, err := shared.NewRouter(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	replicas = []*stack.Router{second, shared.Router}
	// For the first to scan again it takes the lease anew.
	for _, r := range replicas {
		often(t, r)
		if err := r.Start(t.Context()); err != nil { // it returns when the replica serves
			t.Fatal(err)
		}
	}
	want := float64(*pods / namespaces) // of space(0)
	var got float64
	scans := func(r *stack.Router) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) {
			got, _ = value(t, r, belowFloor)
			return got == want, nil
		}
	}
	leader, other := second, shared.Router
	poll(t, func() string { return "no replica scans" }, func(context.Context) (bool, error) {
		for _, r := range replicas {
			if _, ok := value(t, r, success); ok {
				if leader = r; r != second {
					other = second
				}
				return true, nil
			}
		}
		return false, nil
	})
	poll(t, func() string { return fmt.Sprintf("%v pods below the floor, want %v", got, want) }, scans(leader))
	if _, ok := value(t, other, success); ok {
		t.Error("both replicas tell of pods")
	}
	// The reports, with the rights of the chart's ServiceAccount.
	if _, err := shared.Kubectl(t.Context(), "delete", "reports.openreports.io", "-A", "--all"); err != nil {
		t.Fatal(err)
	}
	poll(t, func() string { return "the scan writes no reports" }, func(context.Context) (bool, error) {
		return len(reported(t, "reports.openreports.io")) >= 2, nil
	})
	if err := leader.Stop(); err != nil {
		t.Fatal(err)
	}
	poll(t, func() string { return fmt.Sprintf("the other replica finds %v below the floor, want %v", got, want) }, scans(other))
	if err := leader.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// replicas are the webhook that the API server asks and another; oneScans sets them.
var replicas []*stack.Router

// evictions: pods of a controller that are below their floor are made anew, one at a time
// where a PodDisruptionBudget says so; no others are.
func evictions(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: web}},
	}
	if _, err := clients.PolicyV1().PodDisruptionBudgets("shop").Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Pods("shop").Create(t.Context(), pod("bare"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var holds atomic.Bool
	go kubelet(t.Context(), "shop", &holds)
	poll(t, func() string { return "the PodDisruptionBudget allows none" }, func(ctx context.Context) (bool, error) {
		budget, err := clients.PolicyV1().PodDisruptionBudgets("shop").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && budget.Status.DisruptionsAllowed == 1 && budget.Status.CurrentHealthy == 3, nil
	})
	// Younger ones may be what came after an eviction.
	for _, pod := range running(t, "shop") {
		time.Sleep(time.Until(pod.CreationTimestamp.Add(15 * time.Second)))
	}
	holds.Store(true)
	if _, err := shared.Kubectl(t.Context(), "label", "namespace", "quiet", catalog.LabelMode+"=warn"); err != nil {
		t.Fatal(err)
	}
	quiet := running(t, "quiet")
	label(t, "quiet", "untrusted")
	label(t, "shop", "untrusted")

	poll(t, func() string { return "no eviction was blocked" }, func(context.Context) (bool, error) { return outcome(t, "blocked") > 0, nil })
	if got := outcome(t, "evicted"); got != 1 {
		t.Errorf("%v pods were evicted, and the PodDisruptionBudget allows one", got)
	}
	holds.Store(false)
	var classes []string
	poll(t, func() string { return fmt.Sprintf("shop runs %v", classes) }, func(context.Context) (bool, error) {
		classes = nil
		for _, pod := range running(t, "shop") {
			classes = append(classes, pod.Name[:3]+" "+ptr.Deref(pod.Spec.RuntimeClassName, ""))
		}
		slices.Sort(classes)
		return slices.Equal(classes, []string{"bar crun", "web gvisor", "web gvisor", "web gvisor"}), nil
	})
	if got := outcome(t, "evicted"); got != 3 {
		t.Errorf("%v pods were evicted, want 3", got)
	}
	if got := running(t, "quiet"); len(got) != 1 || got[0].UID != quiet[0].UID {
		t.Error("a pod was evicted where nothing is enforced")
	}
	poll(t, func() string { return "no Event on the evicted pods" }, func(ctx context.Context) (bool, error) {
		list, err := clients.EventsV1().Events("shop").List(ctx, metav1.ListOptions{FieldSelector: "reason=BelowFloor"})
		return err == nil && len(list.Items) == 3 && strings.HasPrefix(list.Items[0].Note, "evicted: handler crun counts as host-kernel"), nil
	})
}

// outcome counts over both replicas.
func outcome(t *testing.T, of string) (n float64) {
	t.Helper()
	for _, r := range replicas {
		counted, _ := value(t, r, fmt.Sprintf(`runtimeclass_router_audit_evictions_total{outcome=%q}`, of))
		n += counted
	}
	return n
}

var web = map[string]string{"example.com/app": "web"}

// deploy makes a trusted namespace with a Deployment in it, and waits for its pods.
func deploy(t *testing.T, namespace string, replicas int) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{catalog.LabelTrust: "trusted"}}}
	if err := shared.CreateNamespace(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	_, err := clients.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: web},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: web}, Spec: pod("web").Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	poll(t, func() string { return "the Deployment makes no pods" }, func(context.Context) (bool, error) {
		return len(running(t, namespace)) == replicas, nil
	})
}

// running are the pods of a namespace that are not being deleted.
func running(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := clients.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// kubelet says that pods are ready until ctx ends; while holds, of no more of them.
func kubelet(ctx context.Context, namespace string, holds *atomic.Bool) {
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		list, err := clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || holds.Load() {
			continue
		}
		for i := range list.Items {
			p := &list.Items[i]
			if p.Status.Phase == corev1.PodRunning {
				continue
			}
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_, _ = clients.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}) // or in the next round
		}
	}
}

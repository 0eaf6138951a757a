package chart

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/registration"
)

// What people complain about in other charts, each with a test of its name.

// TestArgoCDDiff: what the product writes into what the chart renders is no difference that
// a three-way comparison would undo.
func TestArgoCDDiff(t *testing.T) {
	t.Parallel()
	for _, rendered := range render(t, "") {
		live := rendered.DeepCopyObject().(client.Object)
		switch live := live.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for i := range live.Webhooks {
				live.Webhooks[i].ClientConfig.CABundle = []byte("CA")
				live.Webhooks[i].Rules = registration.Rules()[live.Webhooks[i].Name]
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range live.Webhooks {
				live.Webhooks[i].ClientConfig.CABundle = []byte("CA")
				live.Webhooks[i].Rules = registration.Rules()[live.Webhooks[i].Name]
			}
		case *corev1.Secret:
			live.Data = map[string][]byte{corev1.TLSCertKey: []byte("certificate")}
		case *corev1.ServiceAccount:
			if strings.HasSuffix(live.Name, "-guards") {
				live.Annotations = map[string]string{"guards.runtimeclass-router.io/levels": "untrusted"}
			}
		}
		noDifference(t, rendered, live)
	}
}

// noDifference compares as Argo CD and kubectl apply do: by what is given, what was given
// before and what is there.
func noDifference(t *testing.T, given, live client.Object) {
	t.Helper()
	raw, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(given)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(withoutServers(t, raw), withoutServers(t, raw), stored, meta, true)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(stored, patch, meta)
	if err != nil {
		t.Fatal(err)
	}
	after := live.DeepCopyObject()
	if err := json.Unmarshal(patched, after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runtime.Object(live), after); diff != "" {
		t.Errorf("%T %s would be changed (-live +after):\n%s", given, given.GetName(), diff)
	}
}

// withoutServers is an object without what only a server writes.
func withoutServers(t *testing.T, raw []byte) []byte {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestVersionsOfProviders: 1.30+ and suffixes are versions like others, and what is too old
// is refused.
func TestVersionsOfProviders(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"1.30+": true, "v1.30+": true, "v1.30.0": true, "v1.31.2-gke.1478000": true, "v1.30.4-eks-a18cd3a": true, "v1.33.1+k3s1": true, "v1.30.0-0": true,
		"v1.29.9": false, "1.28+": false, "v1.29.15-gke.1": false,
	} {
		if _, err := templateFor(t, "", "--kube-version="+version); (err == nil) != want {
			t.Errorf("%s: %v, want accepted %t", version, err, want)
		}
	}
	// Where a preset asks for more, the suffix does not hide the version either.
	for version, want := range map[string]bool{"v1.36.0-eks-1": true, "1.36+": true, "v1.37.1": true, "v1.35.9-eks-1": false} {
		if _, err := templateFor(t, "{preset: eks, runtimeClasses: {create: true}}", "--kube-version="+version); (err == nil) != want {
			t.Errorf("preset eks on %s: %v, want accepted %t", version, err, want)
		}
	}
}

// TestCriticalPriorityOnGKE: GKE keeps the critical priorities for namespaces with a quota.
func TestCriticalPriorityOnGKE(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]int{"--kube-version=v1.33.1-gke.1386000": 1, "--kube-version=v1.33.1": 0} {
		manifests, err := templateFor(t, "", flags)
		if err != nil {
			t.Fatal(err)
		}
		quotas := 0
		for _, object := range decode(t, manifests) {
			if quota, ok := object.(*corev1.ResourceQuota); ok {
				quotas++
				if got := quota.Spec.ScopeSelector.MatchExpressions[0].Values; len(got) != 1 || got[0] != "system-cluster-critical" {
					t.Errorf("the quota is for %v", got)
				}
			}
		}
		if quotas != want {
			t.Errorf("%s: %d quotas, want %d", flags, quotas, want)
		}
	}
}

// TestPrivateClusterPort: the firewall of a private GKE cluster lets the control plane reach
// nodes on 443 and 10250 only, and the pods listen where the Service sends.
func TestPrivateClusterPort(t *testing.T) {
	t.Parallel()
	objects := render(t, "")
	container := only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0]
	service := only[*corev1.Service](t, objects).Spec.Ports[0]
	port := container.Ports[0]
	if port.Name != service.TargetPort.StrVal || port.ContainerPort != 10250 {
		t.Errorf("the Service sends to %s, port %s is %d, want 10250", service.TargetPort.StrVal, port.Name, port.ContainerPort)
	}
	if got := configuration(t, objects).Webhook.Port; got != 10250 {
		t.Errorf("the configuration says port %d, want 10250", got)
	}
}

// TestHostNetworkPortClash: in the node's network 10250 is the kubelet's, and two pods cannot
// have one port.
func TestHostNetworkPortClash(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"{hostNetwork: true}":                                     "webhook.port: 10250 is the kubelet's",
		"{hostNetwork: true, webhook: {port: 8080}}":              "three different ports",
		"{webhook: {port: 8081}}":                                 "three different ports",
		"{health: {port: 9000}, metrics: {port: 9000}}":           "three different ports",
		"{hostNetwork: true, webhook: {port: 9443}, replicas: 3}": "",
	} {
		_, err := template(t, values)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", values, err, want)
		}
	}
	deployment := only[*appsv1.Deployment](t, render(t, "{hostNetwork: true, webhook: {port: 9443}}"))
	pod := deployment.Spec.Template.Spec
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("host network %t, DNS policy %s", pod.HostNetwork, pod.DNSPolicy)
	}
	// On as many nodes as replicas the new pod has no port before an old one ends.
	if got := deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); got != 1 {
		t.Errorf("max unavailable %d, want 1", got)
	}
}

// TestHPAWithReplicas: the Deployment renders no number that would undo the autoscaler's.
func TestHPAWithReplicas(t *testing.T) {
	t.Parallel()
	objects := render(t, "{replicas: 5, autoscaling: {enabled: true}}")
	deployment, scaler := only[*appsv1.Deployment](t, objects), only[*autoscalingv2.HorizontalPodAutoscaler](t, objects)
	if deployment.Spec.Replicas != nil {
		t.Errorf("replicas %d beside an autoscaler", *deployment.Spec.Replicas)
	}
	if scaler.Spec.ScaleTargetRef.Name != deployment.Name || *scaler.Spec.MinReplicas < 2 {
		t.Errorf("the autoscaler is %+v", scaler.Spec)
	}
	if _, err := template(t, "{autoscaling: {enabled: true, minReplicas: 9}}"); err == nil || !strings.Contains(err.Error(), "autoscaling.minReplicas") {
		t.Errorf("error %v, want autoscaling.minReplicas", err)
	}
}

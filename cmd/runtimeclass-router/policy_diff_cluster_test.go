package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// A generated cluster: 40 namespaces, of which each fourth is of one kind, and 300 owners
// of ten shapes.
const (
	generatedNamespaces = 40
	generatedOwners     = 300
)

var namespaceKinds = []map[string]string{
	{catalog.LabelTrust: "trusted"},
	{catalog.LabelTrust: "untrusted"},
	{catalog.LabelTrust: "untrusted", catalog.LabelMode: "warn"},
	nil, // unlabelled, which is untrusted in mode warn
}

var podShapes = []string{"web", "database", "agent", "job", "mesh", "host", "notebook", "cache", "batch", "bare"}

// generated is one pod's place in the cluster.
type generated struct{ index, owner, namespace int }

func generate(index int) generated {
	owner := index % generatedOwners
	return generated{index, owner, (owner + owner/10) % generatedNamespaces}
}

func (g generated) shape() string { return podShapes[g.owner%len(podShapes)] }
func (g generated) kind() int     { return g.namespace % len(namespaceKinds) }
func (g generated) space() string { return fmt.Sprintf("ns-%02d", g.namespace) }

// routed: the webhook has given it a class.
func (g generated) routed() bool {
	return g.kind() <= 1 && g.shape() != "agent" && g.shape() != "host" && g.shape() != "bare"
}

// pod is the pod as a cluster of Kubernetes 1.37 stores it.
func (g generated) pod() *corev1.Pod {
	owner := fmt.Sprintf("%s-%03d", g.shape(), g.owner)
	token := fmt.Sprintf("kube-api-access-%05x", g.index)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-5d4f-%05x", owner, g.index), GenerateName: owner + "-5d4f-", Namespace: g.space(),
			UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", g.index)), ResourceVersion: strconv.Itoa(1000 + g.index),
			Labels:      map[string]string{"app.kubernetes.io/name": owner, "example.com/shape": g.shape(), "pod-template-hash": "5d4f"},
			Annotations: map[string]string{"cni.example.com/address": fmt.Sprintf("10.%d.%d.%d", g.index>>16, g.index>>8&255, g.index&255)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner + "-5d4f", UID: "1", Controller: ptr.To(true),
			}},
			ManagedFields: managed("f:containers", "f:dnsPolicy", "f:enableServiceLinks", "f:restartPolicy", "f:schedulerName", "f:securityContext"),
		},
		Spec: corev1.PodSpec{
			NodeName: "crun-1", ServiceAccountName: "default", DNSPolicy: corev1.DNSClusterFirst, EnableServiceLinks: ptr.To(true),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
			},
			Containers: []corev1.Container{container("main", owner, token)},
			Volumes:    []corev1.Volume{{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](420)}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", StartTime: &metav1.Time{}},
	}
	g.form(pod, owner, token)
	if g.routed() {
		g.route(pod)
	}
	return pod
}

// form makes the pod one of its shape.
func (g generated) form(pod *corev1.Pod, owner, token string) {
	controlled := &pod.OwnerReferences[0]
	switch g.shape() {
	case "database":
		controlled.Kind, controlled.Name = "StatefulSet", owner
		pod.GenerateName, pod.Name = "", fmt.Sprintf("%s-%d", owner, g.index/generatedOwners)
		claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pod.Name}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	case "agent":
		controlled.Kind, controlled.Name = "DaemonSet", owner
	case "job":
		controlled.Kind, controlled.Name = "Job", owner
		pod.Spec.RestartPolicy, pod.Status.Phase = corev1.RestartPolicyNever, corev1.PodSucceeded
	case "mesh":
		pod.Spec.Containers = append(pod.Spec.Containers, container("proxy", "proxy", token), container("logs", "logs", token))
		pod.Spec.InitContainers = []corev1.Container{container("setup", "setup", token)}
	case "host":
		pod.Spec.HostNetwork = true
	case "notebook":
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](100), RunAsNonRoot: ptr.To(true)}
	case "bare":
		pod.OwnerReferences = nil
	}
}

// route writes into the pod what the webhook and the API server do.
func (g generated) route(pod *corev1.Pod) {
	class, trust := "crun", "trusted"
	if g.kind() == 1 {
		class, trust = "gvisor", "untrusted"
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: "example.com/sandbox", Operator: corev1.TolerationOpEqual, Value: "gvisor", Effect: corev1.TaintEffectNoSchedule,
		})
	}
	pod.Spec.RuntimeClassName, pod.Spec.NodeSelector = &class, map[string]string{"example.com/runtime": class}
	pod.Annotations[catalog.AnnotationTrust] = trust
	pod.Annotations[catalog.AnnotationReason] = "it was so"
	pod.Annotations[catalog.AnnotationPolicyRevision] = "0123456789ab"
}

func container(name, image, token string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: "registry.example.com/" + image + ":1", ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Ports:        []corev1.ContainerPort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}},
		VolumeMounts: []corev1.VolumeMount{{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
		LivenessProbe: &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"true"}},
		}},
	}
	for i := range 12 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%02d", i), Value: strings.Repeat("x", 40)})
	}
	return c
}

// managed are the fields of a pod's spec that its creator sent, as the API server notes
// them, and those of the status that the kubelet writes.
func managed(spec ...string) []metav1.ManagedFieldsEntry {
	sent := map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}}}, "f:spec": map[string]any{}}
	for _, field := range spec {
		sent["f:spec"].(map[string]any)[field] = map[string]any{}
	}
	raw, err := json.Marshal(sent)
	if err != nil {
		panic(err) // plain maps
	}
	return []metav1.ManagedFieldsEntry{
		{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{},"f:podIP":{},"f:startTime":{}}}`)},
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))},
	}
}

// generatedPods encodes pods one by one.
func generatedPods(t testing.TB, n int) []json.RawMessage {
	t.Helper()
	pods := make([]json.RawMessage, 0, n)
	for i := range n {
		raw, err := json.Marshal(generate(i).pod())
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, raw)
	}
	return pods
}

func generatedNamespaceList() []corev1.Namespace {
	var list []corev1.Namespace
	for i := range generatedNamespaces {
		g := generated{namespace: i}
		list = append(list, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.space(), Labels: namespaceKinds[g.kind()]}})
	}
	return list
}

// writePodList writes a file as `kubectl get namespaces,pods -A -o json` prints it.
func writePodList(t testing.TB, pods []json.RawMessage) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "cluster.json")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	}()
	fmt.Fprint(out, `{"apiVersion": "v1", "kind": "List", "items": [`)
	for _, ns := range generatedNamespaceList() {
		ns.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}
		raw, err := json.Marshal(ns)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "%s,\n", raw)
	}
	for i, pod := range pods {
		if i > 0 {
			fmt.Fprint(out, ",\n")
		}
		fmt.Fprintf(out, `{"apiVersion": "v1", "kind": "Pod", %s`, pod[1:])
	}
	fmt.Fprint(out, `]}`)
	return file
}

// pagingServer answers lists as an API server does.
type pagingServer struct {
	pods     []json.RawMessage
	expireAt int    // the token of this position has expired
	goOn     string // what a list that has expired is offered: "" is nothing
	forbid   string // a resource

	mu       sync.Mutex
	requests []url.Values // for pods, in their order
	paths    []string
}

// kubeconfig starts the server and names it.
func (s *pagingServer) kubeconfig(t testing.TB) string {
	t.Helper()
	example := &catalog.Manifests{}
	if err := example.Add("example", exampleCluster); err != nil {
		t.Fatal(err)
	}
	var classes nodev1.RuntimeClassList
	var nodes corev1.NodeList
	for _, d := range example.Documents {
		switch object := d.Object.(type) {
		case *nodev1.RuntimeClass:
			classes.Items = append(classes.Items, *object)
		case *corev1.Node:
			nodes.Items = append(nodes.Items, *object)
		}
	}
	mux := http.NewServeMux()
	for path, list := range map[string]runtime.Object{
		"/api/v1/namespaces": &corev1.NamespaceList{Items: generatedNamespaceList()}, "/api/v1/nodes": &nodes,
		"/apis/node.k8s.io/v1/runtimeclasses": &classes,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if s.forbid != "" && strings.HasSuffix(r.URL.Path, s.forbid) {
				fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "")
				return
			}
			answer(w, http.StatusOK, list)
		})
	}
	mux.HandleFunc("/api/v1/pods", s.list)
	mux.HandleFunc("/api/v1/namespaces/{namespace}/pods", s.list)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s *pagingServer) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	s.requests, s.paths = append(s.requests, query), append(s.paths, r.URL.Path)
	s.mu.Unlock()
	if s.forbid == "pods" {
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "")
		return
	}
	from, fresh := 0, false
	if token := query.Get("continue"); token != "" {
		token, fresh = strings.CutPrefix(token, "fresh-")
		var err error
		if from, err = strconv.Atoi(token); err != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "")
			return
		}
	}
	if s.expireAt > 0 && from == s.expireAt && !fresh {
		fail(w, http.StatusGone, metav1.StatusReasonExpired, s.goOn)
		return
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = len(s.pods)
	}
	to := min(from+limit, len(s.pods))
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if to < len(s.pods) {
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(to), ptr.To(int64(len(s.pods)-to))
	}
	answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": meta, "items": s.pods[from:to]})
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, next string) {
	answer(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, ListMeta: metav1.ListMeta{Continue: next},
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "the server says " + string(reason),
	})
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// wanted is what the user asks about; all is empty where a file has one only.
type wanted struct {
	kind *askable
	name string
}

// askable is a kind that makes pods, by the names that kubectl has for it.
type askable struct {
	kind    string
	names   []string
	version schema.GroupVersion
	client  func(kubernetes.Interface) rest.Interface
}

var (
	coreClient  = func(c kubernetes.Interface) rest.Interface { return c.CoreV1().RESTClient() }
	appsClient  = func(c kubernetes.Interface) rest.Interface { return c.AppsV1().RESTClient() }
	batchClient = func(c kubernetes.Interface) rest.Interface { return c.BatchV1().RESTClient() }
	apps        = schema.GroupVersion{Group: "apps", Version: "v1"}
	batch       = schema.GroupVersion{Group: "batch", Version: "v1"}

	// The last name of each is the resource's.
	askables = []askable{
		{"Pod", []string{"po", "pod", "pods"}, corev1.SchemeGroupVersion, coreClient},
		{"Deployment", []string{"deploy", "deployment", "deployments"}, apps, appsClient},
		{"StatefulSet", []string{"sts", "statefulset", "statefulsets"}, apps, appsClient},
		{"DaemonSet", []string{"ds", "daemonset", "daemonsets"}, apps, appsClient},
		{"ReplicaSet", []string{"rs", "replicaset", "replicasets"}, apps, appsClient},
		{"ReplicationController", []string{"rc", "replicationcontroller", "replicationcontrollers"}, corev1.SchemeGroupVersion, coreClient},
		{"Job", []string{"job", "jobs"}, batch, batchClient},
		{"CronJob", []string{"cj", "cronjob", "cronjobs"}, batch, batchClient},
	}
)

// parseWanted reads NAME, which is a pod's, or KIND/NAME.
func parseWanted(args []string) (*wanted, error) {
	if len(args) == 0 {
		return &wanted{}, nil
	}
	kind, name, given := strings.Cut(args[0], "/")
	if !given {
		kind, name = "pod", args[0]
	}
	for i := range askables {
		if slices.Contains(askables[i].names, strings.ToLower(kind)) && name != "" {
			return &wanted{&askables[i], name}, nil
		}
	}
	var kinds []string
	for _, a := range askables {
		kinds = append(kinds, a.names[0])
	}
	return nil, fmt.Errorf("%q: name a pod, or a workload as KIND/NAME with one of the kinds %s", args[0], strings.Join(kinds, ", "))
}

// among finds it in manifests.
func (w *wanted) among(m *catalog.Manifests, namespace string) (*catalog.Document, error) {
	var found []*catalog.Document
	for i := range m.Documents {
		d := &m.Documents[i]
		object, ok := d.Object.(metav1.Object)
		if _, makesPods := webhook.Templates[d.GVK.Kind]; !ok || !makesPods {
			continue
		}
		if w.kind != nil && (d.GVK.Kind != w.kind.kind || object.GetName() != w.name) || namespace != "" && object.GetNamespace() != namespace {
			continue
		}
		found = append(found, d)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d pods and workloads of the manifests are meant: name one, as NAME or KIND/NAME, and with -n its namespace", len(found))
	}
	return found[0], nil
}

// of gets it from the cluster, as it was stored.
func (w *wanted) of(ctx context.Context, client kubernetes.Interface, namespace string) (*catalog.Document, error) {
	if w.kind == nil {
		return nil, errors.New("name a pod, or a workload as KIND/NAME")
	}
	resource := w.kind.names[len(w.kind.names)-1]
	result := w.kind.client(client).Get().Namespace(namespace).Resource(resource).Name(w.name).
		SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx)
	err := result.Error() // which says why, as that of Raw does not
	var raw []byte
	if err == nil {
		raw, err = result.Raw()
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s in namespace %s: %w", resource, w.name, namespace, err)
	}
	object := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("%s %s: %w", resource, w.name, err)
	}
	return &catalog.Document{File: "the cluster", GVK: w.kind.version.WithKind(w.kind.kind), Raw: raw, Object: object}, nil
}

// contextNamespace is the namespace of a kubeconfig's context.
func contextNamespace(file, name string) (string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).Namespace()
	if err != nil {
		return "", fmt.Errorf("find the cluster: %w", err)
	}
	return namespace, nil
}

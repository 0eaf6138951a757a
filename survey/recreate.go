package survey

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// stored is a pod as a cluster holds it. Spec and Metadata keep every field that is not
// taken out, also those that this build does not know.
type stored struct {
	metadata, spec map[string]json.RawMessage

	annotations map[string]string
	owners      []metav1.OwnerReference
	sent        *sent
	class       string
}

// sent is what of a pod its creator sent. The API server notes the fields of a new object
// before it calls any admission plugin or webhook, and the binding of a pod to a node is
// noted nowhere: what is not noted has been added.
type sent struct {
	Spec struct {
		Containers       *struct{} `json:"f:containers"`
		NodeName         *struct{} `json:"f:nodeName"`
		NodeSelector     *struct{} `json:"f:nodeSelector"`
		RuntimeClassName *struct{} `json:"f:runtimeClassName"`
	} `json:"f:spec"`
}

// Recreated is a pod that its owner would create next, as the webhook would be shown it.
type Recreated struct {
	Raw json.RawMessage
	// Replaced: its creator asked for a class, and the webhook wrote another over it.
	Replaced bool
}

// Recreate makes of a pod that a cluster runs the one that comes after it: what the
// cluster added since it was created, and what the webhook wrote into it, are taken out.
// What the API server's own plugins add before they call webhooks stays: a new pod has
// it too. A pod that no cluster has run comes back as it is.
func Recreate(raw json.RawMessage, cluster *catalog.Catalog) (Recreated, error) {
	var object struct {
		Metadata, Spec map[string]json.RawMessage
		Status         struct {
			Phase corev1.PodPhase
		}
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return Recreated{}, err
	}
	if object.Status.Phase == "" || object.Metadata == nil || object.Spec == nil {
		return Recreated{Raw: raw}, nil
	}
	p := &stored{metadata: object.Metadata, spec: object.Spec}
	if err := p.read(); err != nil {
		return Recreated{}, err
	}
	p.forget()
	replaced, err := p.unroute(cluster)
	if err != nil {
		return Recreated{}, err
	}
	raw, err = json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": p.metadata, "spec": p.spec})
	return Recreated{Raw: raw, Replaced: replaced}, err
}

func (p *stored) read() error {
	var managed []struct {
		Subresource string          `json:"subresource"`
		FieldsV1    json.RawMessage `json:"fieldsV1"`
	}
	for _, field := range []struct {
		of   map[string]json.RawMessage
		name string
		into any
	}{
		{p.metadata, "annotations", &p.annotations},
		{p.metadata, "ownerReferences", &p.owners},
		{p.metadata, "managedFields", &managed},
		{p.spec, "runtimeClassName", &p.class},
	} {
		if raw, ok := field.of[field.name]; ok {
			if err := json.Unmarshal(raw, field.into); err != nil {
				return fmt.Errorf("%s: %w", field.name, err)
			}
		}
	}
	for _, m := range managed {
		var s sent
		if m.Subresource == "" && json.Unmarshal(m.FieldsV1, &s) == nil && s.Spec.Containers != nil {
			p.sent = &s
			break
		}
	}
	return nil
}

// forget takes out what no pod has when it is created.
func (p *stored) forget() {
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(p.metadata, key)
	}
	if _, ok := p.metadata["generateName"]; ok {
		delete(p.metadata, "name") // the next one has another
	}
	delete(p.spec, "ephemeralContainers") // somebody debugged this one
	if p.sent == nil || p.sent.Spec.NodeName == nil {
		delete(p.spec, "nodeName") // the scheduler's
	}
}

// unroute takes out what the webhook, or the fallback that stands in for it, wrote.
func (p *stored) unroute(cluster *catalog.Catalog) (replaced bool, err error) {
	_, routed := p.annotations[catalog.AnnotationPolicyRevision]
	fallback, fell := p.annotations[catalog.AnnotationFallback]
	if !routed && !fell {
		return false, nil
	}
	for _, key := range []string{catalog.AnnotationTrust, catalog.AnnotationReason, catalog.AnnotationPolicyRevision, catalog.AnnotationFallback} {
		delete(p.annotations, key)
	}
	if err := put(p.metadata, "annotations", p.annotations); err != nil {
		return false, err
	}
	if p.class == "" || !routed && fallback != p.class {
		return false, nil
	}
	delete(p.spec, "runtimeClassName")
	delete(p.spec, "overhead")
	replaced = p.sent != nil && p.sent.Spec.RuntimeClassName != nil
	if class := cluster.RuntimeClass(p.class); class != nil {
		err = p.unplace(class)
	}
	return replaced, err
}

// unplace takes the class's scheduling out of the pod, exactly as routing takes out that
// of a class which a pod arrives with, and where the creator sent no selector also that of
// the class as it once was. A DaemonSet's selector stays where its template has one:
// without that of the pool its pods would not have been routed.
func (p *stored) unplace(class *catalog.RuntimeClass) error {
	var selector map[string]string
	if raw, ok := p.spec["nodeSelector"]; ok {
		if err := json.Unmarshal(raw, &selector); err != nil {
			return fmt.Errorf("nodeSelector: %w", err)
		}
	}
	own := p.sent == nil || p.sent.Spec.NodeSelector != nil
	daemon := slices.ContainsFunc(p.owners, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
	if !daemon || !own {
		maps.DeleteFunc(selector, func(key, value string) bool {
			merged, ok := class.NodeSelector[key]
			return ok && (merged == value || !own)
		})
	}
	if err := put(p.spec, "nodeSelector", selector); err != nil {
		return err
	}
	var tolerations []json.RawMessage
	if raw, ok := p.spec["tolerations"]; ok {
		if err := json.Unmarshal(raw, &tolerations); err != nil {
			return fmt.Errorf("tolerations: %w", err)
		}
	}
	return put(p.spec, "tolerations", slices.DeleteFunc(tolerations, func(raw json.RawMessage) bool {
		var t corev1.Toleration
		return json.Unmarshal(raw, &t) == nil &&
			slices.ContainsFunc(class.Tolerations, func(other corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, other) })
	}))
}

// put writes a field, or takes away what is empty.
func put[C map[string]string | []json.RawMessage](fields map[string]json.RawMessage, key string, value C) error {
	if len(value) == 0 {
		delete(fields, key)
		return nil
	}
	raw, err := json.Marshal(value)
	fields[key] = raw
	return err
}

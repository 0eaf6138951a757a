package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Template says where a kind of object keeps its pod.
type Template struct {
	// path is the template's, from the object; empty for a Pod.
	path []string
	// owner is the kind of the object that owns the pods that are made of it.
	owner string
}

// Templates are the kinds that make pods, and the Pod itself.
var Templates = map[string]Template{
	"Pod":                   {},
	"Deployment":            {[]string{"spec", "template"}, "ReplicaSet"},
	"StatefulSet":           {[]string{"spec", "template"}, "StatefulSet"},
	"DaemonSet":             {[]string{"spec", "template"}, "DaemonSet"},
	"ReplicaSet":            {[]string{"spec", "template"}, "ReplicaSet"},
	"ReplicationController": {[]string{"spec", "template"}, "ReplicationController"},
	"Job":                   {[]string{"spec", "template"}, "Job"},
	"CronJob":               {[]string{"spec", "jobTemplate", "spec", "template"}, "Job"},
}

// Pointer is the template's place as a JSON pointer; empty for a Pod.
func (t Template) Pointer() string {
	if len(t.path) == 0 {
		return ""
	}
	return "/" + strings.Join(t.path, "/")
}

// Pod makes of an object the pod that its controller would create; name is the
// object's.
func (t Template) Pod(object json.RawMessage, name string) (json.RawMessage, error) {
	if len(t.path) == 0 {
		return object, nil
	}
	template, err := t.of(object)
	if err != nil {
		return nil, err
	}
	var pod struct {
		Metadata map[string]any  `json:"metadata"`
		Spec     json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(template, &pod); err != nil {
		return nil, fmt.Errorf("field %s: %w", strings.Join(t.path, "."), err)
	}
	if pod.Metadata == nil {
		pod.Metadata = map[string]any{}
	}
	pod.Metadata["generateName"] = name + "-"
	pod.Metadata["ownerReferences"] = []map[string]any{{"kind": t.owner, "name": name, "controller": true}}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": pod.Metadata, "spec": pod.Spec})
}

// of returns the template itself.
func (t Template) of(object json.RawMessage) (json.RawMessage, error) {
	for _, key := range t.path {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, fmt.Errorf("field %s: %w", strings.Join(t.path, "."), err)
		}
		if object = fields[key]; object == nil {
			return nil, fmt.Errorf("field %s is missing", strings.Join(t.path, "."))
		}
	}
	return object, nil
}

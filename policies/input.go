package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Request is what policies read as input.request.
type Request struct {
	Operation   string                    `json:"operation"`
	SubResource string                    `json:"subResource"`
	Namespace   string                    `json:"namespace"`
	Name        string                    `json:"name"`
	UserInfo    authenticationv1.UserInfo `json:"userInfo"`
	DryRun      bool                      `json:"dryRun"`
	// Date is the UTC day of the request, as 2006-01-02. It is the only time that
	// a policy knows: an admission review carries none.
	Date string `json:"date"`
}

// Input is what a policy decides on.
type Input struct {
	Request   Request
	Namespace catalog.Namespace
	// Pod is the Pod as JSON, as the API server sent it.
	Pod json.RawMessage
}

// Node is what policies read as input.node: facts about the node that a pod names in
// spec.nodeName, and about those that its node selector admits.
type Node struct {
	// RuntimeClasses are the classes whose pool the node is in.
	RuntimeClasses []string `json:"runtimeClasses"`
	// Reports: the node is known, and says which handlers it offers.
	Reports bool `json:"reports"`
	// Fits is there for a pod with a node selector of its own: the classes in whose pool
	// a ready node carries those labels today.
	Fits []string `json:"fits,omitempty"`
	// Selects: the pod has a node selector of its own, and Fits tells about it.
	Selects bool `json:"selects"`
}

// nodeOf answers what a decision may ask about nodes for this one pod.
func nodeOf(c *catalog.Catalog, pod map[string]any) Node {
	spec, _ := pod["spec"].(map[string]any)
	bound, _ := spec["nodeName"].(string)
	node := Node{RuntimeClasses: c.Pools(bound), Reports: c.Reports(bound)}
	own := ownSelector(c, spec)
	if len(own) > 0 {
		node.Selects, node.Fits = true, c.Fits(own)
	}
	return node
}

// ownSelector is the pod's node selector without what the API server merged in for the
// class that the pod has.
func ownSelector(c *catalog.Catalog, spec map[string]any) map[string]string {
	selector, _ := spec["nodeSelector"].(map[string]any)
	name, _ := spec["runtimeClassName"].(string)
	class := c.RuntimeClass(name)
	own := map[string]string{}
	for key, value := range selector {
		value, _ := value.(string)
		if class != nil {
			if merged, ok := class.NodeSelector[key]; ok && merged == value {
				continue
			}
		}
		own[key] = value
	}
	return own
}

// value builds the input document. Two things of the pod are left out:
// managedFields, half of an object and nobody's business here, and the volume of
// the service account's token with its mounts, which the API server injects under
// a random name.
func (in *Input) value(c *catalog.Catalog) (ast.Value, error) {
	var pod map[string]any
	if err := util.UnmarshalJSON(in.Pod, &pod); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	if metadata, ok := pod["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	if spec, ok := pod["spec"].(map[string]any); ok {
		withoutToken(spec)
	}
	podValue, err := ast.InterfaceToValue(pod)
	if err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	request, err := ast.InterfaceToValue(in.Request)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	ns := in.Namespace
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	if ns.Annotations == nil {
		ns.Annotations = map[string]string{}
	}
	namespace, err := ast.InterfaceToValue(ns)
	if err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	node, err := ast.InterfaceToValue(nodeOf(c, pod))
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	return ast.NewObject(
		ast.Item(ast.InternedTerm("node"), ast.NewTerm(node)),
		ast.Item(ast.InternedTerm("request"), ast.NewTerm(request)),
		ast.Item(ast.InternedTerm("pod"), ast.NewTerm(podValue)),
		ast.Item(ast.InternedTerm("namespace"), ast.NewTerm(namespace)),
	), nil
}

// Where the API server mounts the service account's token, and how it names the
// volume (plugin/pkg/admission/serviceaccount in Kubernetes).
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// withoutToken takes the token's volume out, and only what has its shape: a
// hostPath volume under such a name stays for the policy to see.
func withoutToken(spec map[string]any) {
	var token string
	spec["volumes"] = deleteItems(spec["volumes"], func(volume map[string]any) bool {
		name, _ := volume["name"].(string)
		_, projected := volume["projected"]
		if !projected || len(volume) != 2 || !strings.HasPrefix(name, tokenVolumePrefix) {
			return false
		}
		token = name
		return true
	})
	if spec["volumes"] == nil {
		delete(spec, "volumes")
	}
	if token == "" {
		return
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			container["volumeMounts"] = deleteItems(container["volumeMounts"], func(mount map[string]any) bool {
				return mount["name"] == token && mount["mountPath"] == tokenMountPath
			})
			if container["volumeMounts"] == nil {
				delete(container, "volumeMounts")
			}
		}
	}
}

// deleteItems returns list without the objects that del picks, and nil where none
// is left.
func deleteItems(list any, del func(map[string]any) bool) any {
	items, ok := list.([]any)
	if !ok {
		return list
	}
	items = slices.DeleteFunc(items, func(item any) bool {
		object, ok := item.(map[string]any)
		return ok && del(object)
	})
	if len(items) == 0 {
		return nil
	}
	return items
}

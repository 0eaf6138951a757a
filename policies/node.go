package policies

import (
	"fmt"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

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

// fields are the members of input.node.
func (n *Node) fields() map[string]any {
	fields := map[string]any{"runtimeClasses": n.RuntimeClasses, "reports": n.Reports, "selects": n.Selects}
	if len(n.Fits) > 0 {
		fields["fits"] = n.Fits
	}
	return fields
}

// nodeOf answers what a decision may ask about nodes for this one pod.
func nodeOf(c *catalog.Catalog, pod *Pod) (Node, error) {
	var bound, class string
	var selector map[string]string
	for name, into := range map[string]any{"nodeName": &bound, "runtimeClassName": &class, "nodeSelector": &selector} {
		if err := pod.DecodeSpec(name, into); err != nil {
			return Node{}, fmt.Errorf("pod: spec.%s: %w", name, err)
		}
	}
	node := Node{RuntimeClasses: c.Pools(bound), Reports: c.Reports(bound)}
	if own := ownSelector(c.RuntimeClass(class), selector); len(own) > 0 {
		node.Selects, node.Fits = true, c.Fits(own)
	}
	return node, nil
}

// ownSelector is the pod's node selector without what the API server merged in for the
// class that the pod has.
func ownSelector(class *catalog.RuntimeClass, selector map[string]string) map[string]string {
	if class == nil {
		return selector
	}
	own := map[string]string{}
	for key, value := range selector {
		if merged, ok := class.NodeSelector[key]; !ok || merged != value {
			own[key] = value
		}
	}
	return own
}

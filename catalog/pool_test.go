package catalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node is ready, runs Linux and offers runsc; edits make it otherwise.
func node(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", "pool": "sandbox"}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
	}
	offering("", "runsc")(n)
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func offering(handlers ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.RuntimeHandlers = nil
		for _, h := range handlers {
			n.Status.RuntimeHandlers = append(n.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: h})
		}
	}
}

func readiness(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Conditions[1].Status = status }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func windows(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" }

func withLabel(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func tainted(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "sandbox", Value: "yes", Effect: effect})
	}
}

// class has handler runsc and selects nothing.
func class(name string, edits ...func(*nodev1.RuntimeClass)) *nodev1.RuntimeClass {
	c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runsc"}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func selecting(value string) func(*nodev1.RuntimeClass) {
	return func(c *nodev1.RuntimeClass) {
		if c.Scheduling == nil {
			c.Scheduling = &nodev1.Scheduling{}
		}
		c.Scheduling.NodeSelector = map[string]string{"pool": value}
	}
}

func tolerating(t corev1.Toleration) func(*nodev1.RuntimeClass) {
	return func(c *nodev1.RuntimeClass) {
		if c.Scheduling == nil {
			c.Scheduling = &nodev1.Scheduling{}
		}
		c.Scheduling.Tolerations = []corev1.Toleration{t}
	}
}

func autoscaled(c *nodev1.RuntimeClass) {
	c.Labels = map[string]string{LabelAvailability: "autoscaled"}
}

func classOf(c *nodev1.RuntimeClass, nodes ...*corev1.Node) *RuntimeClass {
	return Build([]*nodev1.RuntimeClass{c}, nodes).RuntimeClass(c.Name)
}

func TestPoolReady(t *testing.T) {
	t.Parallel()
	toleration := corev1.Toleration{Key: "sandbox", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	tests := map[string]struct {
		class *nodev1.RuntimeClass
		nodes []*corev1.Node
		want  bool
	}{
		"a ready node offers the handler":                  {class("c"), []*corev1.Node{node("n")}, true},
		"a selected node offers the handler":               {class("c", selecting("sandbox")), []*corev1.Node{node("n")}, true},
		"no node":                                          {class("c"), nil, false},
		"no node offers the handler":                       {class("c"), []*corev1.Node{node("n", offering("", "crun"))}, false},
		"cordoned":                                         {class("c"), []*corev1.Node{node("n", cordoned)}, false},
		"not ready":                                        {class("c"), []*corev1.Node{node("n", readiness(corev1.ConditionFalse))}, false},
		"readiness unknown":                                {class("c"), []*corev1.Node{node("n", readiness(corev1.ConditionUnknown))}, false},
		"no ready condition":                               {class("c"), []*corev1.Node{node("n", func(n *corev1.Node) { n.Status.Conditions = nil })}, false},
		"another value of the label":                       {class("c", selecting("other")), []*corev1.Node{node("n")}, false},
		"no such label":                                    {class("c", selecting("")), []*corev1.Node{node("n", func(n *corev1.Node) { delete(n.Labels, "pool") })}, false},
		"taint not tolerated":                              {class("c"), []*corev1.Node{node("n", tainted(corev1.TaintEffectNoSchedule))}, false},
		"NoExecute taint not tolerated":                    {class("c"), []*corev1.Node{node("n", tainted(corev1.TaintEffectNoExecute))}, false},
		"taint tolerated":                                  {class("c", tolerating(toleration)), []*corev1.Node{node("n", tainted(corev1.TaintEffectNoSchedule))}, true},
		"taint tolerated for another effect":               {class("c", tolerating(toleration)), []*corev1.Node{node("n", tainted(corev1.TaintEffectNoExecute))}, false},
		"one of two taints tolerated":                      {class("c", tolerating(toleration)), []*corev1.Node{node("n", tainted(corev1.TaintEffectNoSchedule), tainted(corev1.TaintEffectNoExecute))}, false},
		"PreferNoSchedule is ignored":                      {class("c"), []*corev1.Node{node("n", tainted(corev1.TaintEffectPreferNoSchedule))}, true},
		"no handlers reported, with a selector":            {class("c", selecting("sandbox")), []*corev1.Node{node("n", offering())}, true},
		"no handlers reported, without a selector":         {class("c"), []*corev1.Node{node("n", offering())}, false},
		"no handlers reported, selector of other nodes":    {class("c", selecting("other")), []*corev1.Node{node("n", offering())}, false},
		"one of two nodes is enough":                       {class("c"), []*corev1.Node{node("a", cordoned), node("b")}, true},
		"offered by one node, ready is another":            {class("c"), []*corev1.Node{node("a", cordoned), node("b", offering("crun"))}, false},
		"autoscaled without a node":                        {class("c", autoscaled), nil, true},
		"availability with another value":                  {class("c", func(c *nodev1.RuntimeClass) { c.Labels = map[string]string{LabelAvailability: "yes"} }), nil, false},
		"autoscaled whose only node is not ready":          {class("c", autoscaled), []*corev1.Node{node("n", readiness(corev1.ConditionFalse))}, true},
		"the handler's name matters, not the class's name": {class("crun"), []*corev1.Node{node("n", offering("crun"))}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classOf(test.class, test.nodes...).PoolReady; got != test.want {
				t.Errorf("PoolReady = %t, want %t", got, test.want)
			}
		})
	}
}

func TestEverywhere(t *testing.T) {
	t.Parallel()
	lacks := offering("", "crun")
	tests := map[string]struct {
		class *nodev1.RuntimeClass
		nodes []*corev1.Node
		want  bool
	}{
		"selects its own nodes, though others lack it": {class("c", selecting("sandbox")), []*corev1.Node{node("n", lacks)}, true},
		"all nodes offer it":                           {class("c"), []*corev1.Node{node("a"), node("b")}, true},
		"one node lacks it":                            {class("c"), []*corev1.Node{node("a"), node("b", lacks)}, false},
		"a tainted node does not count":                {class("c"), []*corev1.Node{node("a"), node("b", lacks, tainted(corev1.TaintEffectNoSchedule))}, true},
		"a PreferNoSchedule taint counts as none":      {class("c"), []*corev1.Node{node("a"), node("b", lacks, tainted(corev1.TaintEffectPreferNoSchedule))}, false},
		"a taint that only the class tolerates does not count": {class("c", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})),
			[]*corev1.Node{node("a"), node("b", lacks, tainted(corev1.TaintEffectNoSchedule))}, true},
		"a Windows node does not count":           {class("c"), []*corev1.Node{node("a"), node("b", lacks, windows)}, true},
		"a cordoned node does not count":          {class("c"), []*corev1.Node{node("a"), node("b", lacks, cordoned)}, true},
		"a node without an os label counts":       {class("c"), []*corev1.Node{node("b", lacks, func(n *corev1.Node) { n.Labels = nil })}, false},
		"a node that is not ready counts":         {class("c"), []*corev1.Node{node("b", lacks, readiness(corev1.ConditionFalse))}, false},
		"a node that reports none gets benefit":   {class("c"), []*corev1.Node{node("a"), node("b", offering())}, true},
		"only nodes that report none":             {class("c"), []*corev1.Node{node("b", offering())}, true},
		"the node's default handler is not runsc": {class("c"), []*corev1.Node{node("b", offering(""))}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classOf(test.class, test.nodes...).Everywhere; got != test.want {
				t.Errorf("Everywhere = %t, want %t", got, test.want)
			}
		})
	}
}

func TestUserNamespacesNeedsEveryNodeOfThePool(t *testing.T) {
	t.Parallel()
	supports := func(yes bool) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.RuntimeHandlers[1].Features = &corev1.NodeRuntimeHandlerFeatures{UserNamespaces: &yes}
		}
	}
	tests := map[string]struct {
		class *nodev1.RuntimeClass
		nodes []*corev1.Node
		want  bool
	}{
		"every node says yes":               {class("c"), []*corev1.Node{node("a", supports(true)), node("b", supports(true))}, true},
		"one node says no":                  {class("c"), []*corev1.Node{node("a", supports(true)), node("b", supports(false))}, false},
		"one node says nothing":             {class("c"), []*corev1.Node{node("a", supports(true)), node("b")}, false},
		"no node":                           {class("c"), nil, false},
		"no node offers the handler":        {class("c"), []*corev1.Node{node("a", offering("", "crun"), supports(true))}, false},
		"a node outside the pool is silent": {class("c", selecting("sandbox")), []*corev1.Node{node("a", supports(true)), node("b", withLabel("pool", "x"), supports(false))}, true},
		"a tainted node is outside":         {class("c"), []*corev1.Node{node("a", supports(true)), node("b", tainted(corev1.TaintEffectNoSchedule), supports(false))}, true},
		"features without the field": {class("c"), []*corev1.Node{node("a", func(n *corev1.Node) {
			n.Status.RuntimeHandlers[1].Features = &corev1.NodeRuntimeHandlerFeatures{}
		})}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classOf(test.class, test.nodes...).UserNamespaces; got != test.want {
				t.Errorf("UserNamespaces = %t, want %t", got, test.want)
			}
		})
	}
}

package policies

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestVirtualNodeBinds(t *testing.T) {
	t.Parallel()
	aci := VirtualNode{NodeSelector: map[string]string{"type": "virtual-kubelet", "isolating": "true"}}
	fargate := VirtualNode{SchedulerName: fargateScheduler}
	full := map[string]string{"type": "virtual-kubelet", "isolating": "true", "zone": "a"}
	tests := map[string]struct {
		node                    VirtualNode
		selector                map[string]string
		scheduler, bound, class string
		want                    bool
	}{
		"selected":              {aci, full, "", "", "", true},
		"half selected":         {aci, map[string]string{"type": "virtual-kubelet"}, "", "", "", false},
		"not selected":          {aci, nil, fargateScheduler, "", "", false},
		"bound by name":         {aci, full, "", "node", "", false},
		"with a class":          {aci, full, "", "", "gvisor", false},
		"scheduled":             {fargate, nil, fargateScheduler, "", "", true},
		"scheduled elsewhere":   {fargate, full, "default-scheduler", "", "", false},
		"scheduled and by name": {fargate, nil, fargateScheduler, "node", "", false},
		"nothing is listed":     {VirtualNode{}, full, fargateScheduler, "", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.node.Binds(test.selector, test.scheduler, test.bound, test.class); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestVirtualNodeFaultsAreNamed(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.IsolatingVirtualNodes = []VirtualNode{{}, {Name: "a", SchedulerName: "mine"}, {Name: "b", SchedulerName: fargateScheduler, NodeSelector: map[string]string{"a": "b"}}}
	got := c.Validate(field.NewPath("router")).ToAggregate().Error()
	for _, want := range []string{"isolatingVirtualNodes[0].name: Required", "isolatingVirtualNodes[0]: Invalid", "isolatingVirtualNodes[1].schedulerName: Unsupported", "isolatingVirtualNodes[2]: Invalid"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q in\n%s", want, got)
		}
	}
}

package chart

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// argoCD compares what the chart renders with what the API server stores, defaults, the
// product's own writes and all: nothing would be synchronised again and again.
func (c *cluster) argoCD(t *testing.T) {
	for _, rendered := range c.objects {
		live := fresh(rendered)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(rendered), live); err != nil {
			t.Error(err)
			continue
		}
		live.SetManagedFields(nil)
		live.GetObjectKind().SetGroupVersionKind(rendered.GetObjectKind().GroupVersionKind())
		noDifference(t, rendered, live)
	}
}

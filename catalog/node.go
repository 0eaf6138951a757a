package catalog

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeFacts are what is asked about single nodes. They are no part of the catalog's
// revision: whoever asks does so for one pod, and its decision reads the answer.
type nodeFacts struct {
	labels  map[string]string
	ready   bool
	reports bool
	classes []string // in whose pool the node is, ready or not
}

func factsOf(classes []RuntimeClass, nodes []*corev1.Node) map[string]nodeFacts {
	facts := make(map[string]nodeFacts, len(nodes))
	for _, node := range nodes {
		f := nodeFacts{labels: node.Labels, ready: ready(node), reports: len(node.Status.RuntimeHandlers) > 0}
		for i := range classes {
			if inPool(&classes[i], node) {
				f.classes = append(f.classes, classes[i].Name)
			}
		}
		facts[node.Name] = f
	}
	return facts
}

// Pools returns the classes, by name, whose pool the node is in.
func (c *Catalog) Pools(node string) []string { return slices.Clone(c.nodes[node].classes) }

// Reports tells whether the node is known and says which handlers it offers; else
// nothing can be held against it.
func (c *Catalog) Reports(node string) bool { return c.nodes[node].reports }

// Fits returns the classes, by name, in whose pool a ready node carries the selector's
// labels too. An autoscaled pool may grow one that does. The caller must not change the
// list: it is remembered, since every pod of the same selector asks for it and it takes a
// look at every node.
func (c *Catalog) Fits(selector map[string]string) []string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(selector)) {
		key.WriteString(name + "=" + selector[name] + "\x00") // which no label holds
	}
	if fits, ok := c.fits.Get(key.String()); ok {
		return fits
	}
	fits := c.fitting(selector)
	c.fits.Add(key.String(), fits)
	return fits
}

func (c *Catalog) fitting(selector map[string]string) []string {
	fits := map[string]bool{}
	for i := range c.RuntimeClasses {
		if c.RuntimeClasses[i].Autoscaled {
			fits[c.RuntimeClasses[i].Name] = true
		}
	}
	for _, node := range c.nodes {
		if !node.ready || !carries(node.labels, selector) {
			continue
		}
		for _, class := range node.classes {
			fits[class] = true
		}
	}
	return slices.Sorted(maps.Keys(fits))
}

func carries(labels, selector map[string]string) bool {
	for key, value := range selector {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}

package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// RuntimeClass is one of the cluster's RuntimeClasses, as policies see it under
// data.catalog.runtimeClasses.
type RuntimeClass struct {
	Name    string `json:"name"`
	Handler string `json:"handler"`
	// Family is the runtime behind the handler ("gvisor", "kata-fc"); candidate
	// lists name families.
	Family    string    `json:"family"`
	Isolation Isolation `json:"isolation"`
	// Overhead is the class's podFixed overhead, an open map of resources; nil
	// where the class has none.
	Overhead     corev1.ResourceList `json:"overhead,omitempty"`
	NodeSelector map[string]string   `json:"nodeSelector"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
	// HostDevicesWithheld is set by the label host-devices=withheld.
	HostDevicesWithheld bool `json:"hostDevicesWithheld"`
	// PoolReady: a ready, schedulable node that the class's scheduling admits
	// offers the handler, or the class is labelled availability=autoscaled.
	PoolReady bool `json:"poolReady"`
	// Everywhere: the class can run on whatever node an ordinary pod may be
	// bound to. See [everywhere].
	Everywhere bool `json:"everywhere"`
	// UserNamespaces: the pool's nodes say that the handler supports pods with
	// hostUsers: false.
	UserNamespaces bool `json:"userNamespaces"`
	// RecursiveReadOnlyMounts: the same for mounts with recursiveReadOnly: Enabled.
	RecursiveReadOnlyMounts bool `json:"recursiveReadOnlyMounts"`
	// Autoscaled is set by the label availability=autoscaled.
	Autoscaled bool `json:"-"`
	// Notes say what is odd about the class, a label that is ignored for
	// instance. They do not influence decisions.
	Notes []string `json:"-"`
}

// Catalog is an immutable view of what a cluster can run.
type Catalog struct {
	// RuntimeClasses are sorted by name.
	RuntimeClasses []RuntimeClass `json:"runtimeClasses"`

	byName   map[string]*RuntimeClass
	nodes    map[string]nodeFacts
	revision string
	fits     *lru.Cache[string, []string] // what [Catalog.Fits] has found out
}

// selectors bounds the node selectors that a catalog remembers: pods' authors write them.
const selectors = 1024

// Build derives the catalog from a cluster's RuntimeClasses and Nodes. Objects
// are read, never kept or changed.
func Build(classes []*nodev1.RuntimeClass, nodes []*corev1.Node) *Catalog {
	c := &Catalog{RuntimeClasses: make([]RuntimeClass, 0, len(classes)), byName: make(map[string]*RuntimeClass, len(classes))}
	for _, class := range classes {
		c.RuntimeClasses = append(c.RuntimeClasses, newRuntimeClass(class, nodes))
	}
	slices.SortFunc(c.RuntimeClasses, func(a, b RuntimeClass) int { return cmp.Compare(a.Name, b.Name) })
	for i := range c.RuntimeClasses {
		c.byName[c.RuntimeClasses[i].Name] = &c.RuntimeClasses[i]
	}
	c.nodes = factsOf(c.RuntimeClasses, nodes)
	c.fits, _ = lru.New[string, []string](selectors) // the error is of a size below 1
	c.revision = c.digest()
	return c
}

func newRuntimeClass(class *nodev1.RuntimeClass, nodes []*corev1.Node) RuntimeClass {
	family, known := Classify(class.Handler)
	isolation, note := labelled(class.Handler, class.Labels[LabelIsolation], known)
	rc := RuntimeClass{
		Name:                class.Name,
		Handler:             class.Handler,
		Family:              family,
		Isolation:           isolation,
		NodeSelector:        map[string]string{},
		Tolerations:         []corev1.Toleration{},
		HostDevicesWithheld: class.Labels[LabelHostDevices] == "withheld",
	}
	if note != "" {
		rc.Notes = append(rc.Notes, note)
	}
	if class.Overhead != nil {
		rc.Overhead = maps.Clone(class.Overhead.PodFixed)
	}
	if class.Scheduling != nil {
		maps.Copy(rc.NodeSelector, class.Scheduling.NodeSelector)
		rc.Tolerations = append(rc.Tolerations, class.Scheduling.Tolerations...)
	}
	rc.Autoscaled = class.Labels[LabelAvailability] == "autoscaled"
	rc.PoolReady = rc.Autoscaled || poolReady(&rc, nodes)
	rc.Everywhere = everywhere(&rc, nodes)
	rc.UserNamespaces, rc.RecursiveReadOnlyMounts = features(&rc, nodes)
	return rc
}

// RuntimeClass returns the class of that name, and nil where there is none.
func (c *Catalog) RuntimeClass(name string) *RuntimeClass { return c.byName[name] }

// Revision is a digest of everything that a decision can read. Two catalogs with
// one revision decide alike, so a node's heartbeat does not change it.
func (c *Catalog) Revision() string { return c.revision }

func (c *Catalog) digest() string {
	// A catalog is plain data: encoding it cannot fail.
	raw, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("unencodable: %v", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

// Namespace is what policies see of a namespace: its metadata.
type Namespace struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

package conformance

import (
	"slices"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// Verdict is what may become of a shape.
type Verdict string

// The verdicts.
const (
	// Deny: refused, by whoever is asked.
	Deny Verdict = "deny"
	// Keep: admitted as it is, with the class that it asks for.
	Keep Verdict = "keep"
	// Skip: admitted as it is.
	Skip Verdict = "skip"
	// RouteCrun, RouteGVisor and RouteKata: admitted under a class of that runtime,
	// whatever the class is called; any Kata will do for RouteKata.
	RouteCrun   Verdict = "route:crun"
	RouteGVisor Verdict = "route:gvisor"
	RouteKata   Verdict = "route:kata"
)

func (v Verdict) known() bool {
	return slices.Contains([]Verdict{Deny, Keep, Skip, RouteCrun, RouteGVisor, RouteKata}, v)
}

// Outcome is what became of a shape.
type Outcome struct {
	// Denied says that it was refused, and Message in what words.
	Denied  bool
	Message string
	// Asked is the class that the pod came with, Class the one that it has now.
	Asked, Class string
	// Patched: something else than the API server itself has changed the pod.
	Patched bool
}

// Allowed reports whether one of the verdicts has come true, over the classes of a
// cluster.
func (o *Outcome) Allowed(verdicts []Verdict, classes *catalog.Catalog) bool {
	return slices.ContainsFunc(verdicts, func(v Verdict) bool { return o.is(v, classes) })
}

func (o *Outcome) is(v Verdict, classes *catalog.Catalog) bool {
	switch runtime, route := strings.CutPrefix(string(v), "route:"); {
	case v == Deny || o.Denied:
		return v == Deny && o.Denied
	case route:
		class := classes.RuntimeClass(o.Class)
		return class != nil && strings.Split(class.Family, "-")[0] == runtime
	case v == Keep:
		return !o.Patched && o.Class == o.Asked && o.Asked != ""
	default:
		return !o.Patched && o.Class == o.Asked
	}
}

// String says it in a word or two, for a table.
func (o *Outcome) String() string {
	switch {
	case o.Denied:
		return "denied"
	case o.Class == o.Asked && o.Class != "":
		return "keeps " + o.Class
	case o.Class == o.Asked:
		return "unchanged"
	default:
		return o.Class
	}
}

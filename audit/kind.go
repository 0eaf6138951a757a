package audit

import "slices"

// Kind is a kind of finding.
type Kind string

// The kinds of finding, the gravest first: a pod has the first that is true of it.
const (
	// BelowFloor: the pod's class isolates less than its level's floor, and no exception
	// covers it. Go's guard says so, whatever the policy does.
	BelowFloor Kind = "below-floor"
	// WouldBeDenied: the pod that its owner makes next would be refused.
	WouldBeDenied Kind = "would-be-denied"
	// PolicyError: the policy fails on it.
	PolicyError Kind = "policy-error"
	// Drifted: the next one would get another class, or the class's nodes are others now.
	Drifted Kind = "drifted"
)

// None is no finding, where one is counted.
const None Kind = "none"

// gravities are what reports call a finding, by the order of the kinds.
var gravities = [...]struct {
	kind             Kind
	severity, result string
}{
	{BelowFloor, "high", "fail"},
	{WouldBeDenied, "medium", "fail"},
	{PolicyError, "medium", "error"},
	{Drifted, "low", "fail"},
}

// Kinds are the kinds of finding, the gravest first.
func Kinds() []Kind {
	var kinds []Kind
	for _, g := range gravities {
		kinds = append(kinds, g.kind)
	}
	return kinds
}

func (k Kind) rank() int { return slices.Index(Kinds(), k) }

// Severity is high, medium or low.
func (k Kind) Severity() string { return gravities[k.rank()].severity }

package doctor

import (
	"context"
	"fmt"
	"slices"
)

// Check is one thing to look at.
type Check struct {
	Name string
	// Needs are what must have been read, or the check is unknown.
	Needs []Need
	// Fine is what it says where it finds nothing.
	Fine string
	run  func(ctx context.Context, c *Cluster) ([]Finding, error)
}

// Checks are all checks, in the order in which they are reported.
func Checks() []Check {
	return slices.Concat(poolChecks, workloadChecks, guardChecks, expiryChecks)
}

// Names are those of all checks.
func Names() []string {
	var names []string
	for _, check := range Checks() {
		names = append(names, check.Name)
	}
	return names
}

// Run runs the checks but those to skip, and returns the findings, the weightiest first. The
// error is of a check that could not be run to its end.
func Run(ctx context.Context, c *Cluster, skip []string) ([]Finding, error) {
	findings := []Finding{}
	for _, check := range Checks() {
		if slices.Contains(skip, check.Name) {
			continue
		}
		found, err := check.findings(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", check.Name, err)
		}
		findings = append(findings, found...)
	}
	return sorted(findings), nil
}

func (check *Check) findings(ctx context.Context, c *Cluster) ([]Finding, error) {
	var found []Finding
	for _, need := range check.Needs {
		if lack, lacks := c.lacks[need]; lacks {
			found = append(found, Finding{Severity: Unknown, Message: lack.message, Next: lack.next})
		}
	}
	if len(found) == 0 {
		var err error
		if found, err = check.run(ctx, c); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		found = []Finding{{Severity: OK, Message: check.Fine}}
	}
	for i := range found {
		found[i].Check = check.Name
	}
	return found, nil
}

package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// ownTests gathers what comes out of a policy's own tests, also of those that are left
// behind.
type ownTests struct {
	mu   sync.Mutex
	ran  map[string]bool // by place
	errs []error
}

// runTests runs the test rules of the modules. The error joins the tests that failed, and
// those that have not ended in time.
func (e *Engine) runTests(ctx context.Context, parsed map[string]*ast.Module, config Config) error {
	ctx, cancel := context.WithTimeout(ctx, e.limits.Tests)
	defer cancel()
	one := e.limits.Tests / 2
	tests := &ownTests{ran: map[string]bool{}}
	_, err := watched(ctx, &e.counts.watchdog, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, eachResult(ctx, parsed, config, tests.add, func(r *tester.Runner) *tester.Runner { return r.SetTimeout(one) })
	})
	if err != nil && !errors.Is(err, ErrAbandoned) {
		return err
	}
	tests.mu.Lock()
	defer tests.mu.Unlock()
	errs := slices.Clone(tests.errs)
	if ctx.Err() != nil {
		errs = append(errs, tests.missing(parsed, fmt.Errorf("had not ended when the tests had taken %s", e.limits.Tests))...)
	}
	return errors.Join(errs...)
}

const hintForSlowTest = "a test that takes so long would hold up every load: test less at a time, or move it to a fixture of `policy test`"

func (o *ownTests) add(result *tester.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ran[placeOf(result.Location)] = true
	name := result.Package + "." + result.Name
	switch {
	case result.Pass() || result.Skip:
	case topdown.IsCancel(result.Error):
		o.errs = append(o.errs, locate(result.Location, hintForSlowTest, fmt.Errorf("%s was stopped after %s", name, result.Duration.Round(duration(result.Duration)))))
	case result.Error != nil:
		o.errs = append(o.errs, locate(result.Location, "", fmt.Errorf("%s failed: %w", name, result.Error)))
	default:
		o.errs = append(o.errs, locate(result.Location, "", fmt.Errorf("%s failed", name)))
	}
}

// missing are the test rules that gave no result, sorted by place, each with its fault.
func (o *ownTests) missing(parsed map[string]*ast.Module, fault error) []error {
	var late []*ast.Rule
	for _, module := range parsed {
		for _, rule := range module.Rules {
			if strings.HasPrefix(nameOf(rule), tester.TestPrefix) && !o.ran[placeOf(rule.Location)] {
				late = append(late, rule)
			}
		}
	}
	slices.SortFunc(late, func(a, b *ast.Rule) int { return a.Location.Compare(b.Location) })
	var errs []error
	for _, rule := range late {
		errs = append(errs, locate(rule.Location, hintForSlowTest, fmt.Errorf("%s.%s %w", rule.Module.Package.Path, nameOf(rule), fault)))
	}
	return errs
}

// nameOf is what OPA's tester goes by: the last part of the rule's name.
func nameOf(rule *ast.Rule) string {
	ref := rule.Head.Ref()
	switch last := ref[len(ref)-1].Value.(type) {
	case ast.Var:
		return string(last)
	case ast.String:
		return string(last)
	}
	return ""
}

func placeOf(location *ast.Location) string {
	if location == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", location.File, location.Row, location.Col)
}

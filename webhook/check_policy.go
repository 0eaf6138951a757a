package webhook

import (
	"context"
	"errors"
	"strings"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// CheckPolicy routes the self-test pods with a policy over its catalog, and finds what no
// evaluation shows: runtime classes that do not exist, and pods that would run below the
// floor of their trust level. The error joins a [policies.SelfTestError] for each, placed
// in the author's files where that can be told. It is for [policies.WithCheck].
func CheckPolicy(ctx context.Context, snapshot *policies.Snapshot) error {
	shipped := policies.Shipped()
	own := func(module string) bool { _, ok := shipped[module]; return !ok }
	return policies.RunSelfTests(snapshot.Config(), func(test policies.SelfTest) error {
		if err := tryOne(ctx, snapshot, test.Input); err != nil {
			return Blame(ctx, snapshot, own, test.Input, err)
		}
		return nil
	})
}

// tryOne is [Router.Route] over a snapshot that is not in force.
func tryOne(ctx context.Context, snapshot *policies.Snapshot, in policies.Input) error {
	pod, err := decodePod(in.Pod)
	if err != nil {
		return err
	}
	decision, err := snapshot.Decide(ctx, in)
	if err != nil {
		return err
	}
	passed, err := guard(snapshot, &in, pod, &decision)
	if err != nil {
		return err
	}
	from := snapshot.Catalog().RuntimeClass(pod.RuntimeClassName)
	_, err = Route{Mode: policies.Enforce}.complete(pod, &decision, from, passed.class)
	return err
}

// Blame gives a fault that OPA does not place in the author's own files the place of the
// rule that it came from: the first hook, or rule of the entry point, that held. own
// picks the author's modules by name.
func Blame(ctx context.Context, snapshot *policies.Snapshot, own func(module string) bool, in policies.Input, err error) error {
	var fault *policies.Fault
	if !errors.As(err, &fault) || fault.Kind != policies.Unsafe && fault.Kind != policies.Failed {
		return err
	}
	placed := policies.Problems(err)[0]
	if placed.File != "" && own(placed.File) {
		return err
	}
	located := &policies.LocatedError{Err: err, Hint: placed.Hint}
	switch message := fault.Error(); {
	case strings.Contains(message, "below the floor"):
		located.Hint = "no policy goes below the floor: answer a class that meets it, or list the pods in the configuration's exceptions"
	case strings.Contains(message, "does not exist"):
		located.Hint = "look the class up in data.catalog.runtimeClasses; `policy check --cluster` goes by your own cluster's classes"
	case strings.Contains(message, "more than the labels allow"):
		located.Hint = "a policy may lower the trust of a pod, never raise it"
	}
	// The error of the trace is the fault that is being placed.
	hooks, _ := snapshot.Hooks(ctx, in, own)
	if len(hooks) == 0 {
		if fault.Kind == policies.Failed {
			return err // it has a place, in the shipped policy
		}
		return located
	}
	located.File, located.Line, located.Column = hooks[0].File, hooks[0].Line, hooks[0].Column
	return located
}

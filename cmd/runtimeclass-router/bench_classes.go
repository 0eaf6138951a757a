package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/runtimeclass-router/runtimeclass-router/benchmark"
	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/catalog/informers"
)

// findClasses takes the cluster's classes, those that isolate least first: they are what
// one compares with.
func (o *benchOptions) findClasses(ctx context.Context, errOut io.Writer) error {
	kube, err := kubeConfig(o.kubeconfig, o.context)
	if err != nil {
		return err
	}
	cluster, _, err := informers.Read(ctx, kube)
	if err != nil {
		return fmt.Errorf("%w (with --class the cluster is not read)", err)
	}
	classes := slices.Clone(cluster.RuntimeClasses)
	rank := func(c *catalog.RuntimeClass) int { return max(0, slices.Index(catalog.Isolations(), c.Isolation)) }
	slices.SortStableFunc(classes, func(a, b catalog.RuntimeClass) int { return cmp.Compare(rank(&a), rank(&b)) })
	for _, class := range classes {
		if !class.PoolReady {
			fmt.Fprintf(errOut, "note: runtime class %s has no ready node: not measured\n", class.Name)
			continue
		}
		if !class.Everywhere {
			fmt.Fprintf(errOut, "note: runtime class %s selects no nodes, and some lack its handler: pods that are bound there fail\n", class.Name)
		}
		o.Classes = append(o.Classes, class.Name)
	}
	if len(o.Classes) == 0 {
		return errors.New("no runtime class of this cluster has a ready node")
	}
	return nil
}

// without plans anew for the classes whose pods are admitted as they are.
func (o *benchOptions) without(refused map[string]error, plan *benchmark.Plan, named bool) (*benchmark.Plan, error) {
	if len(refused) == 0 {
		return plan, nil
	}
	options := plan.Options
	options.Classes = slices.DeleteFunc(slices.Clone(plan.Classes), func(class string) bool { return refused[class] != nil })
	if named || len(options.Classes) == 0 {
		var errs []error
		for _, class := range slices.Sorted(maps.Keys(refused)) {
			errs = append(errs, fmt.Errorf("runtime class %s: %w", class, refused[class]))
		}
		return nil, errors.Join(errs...)
	}
	return benchmark.NewPlan(plan.Run, options)
}

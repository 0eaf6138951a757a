package main

import (
	"context"
	"io"

	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// explain prints how the shipped rules came to the answer; beside an error, what was
// found out before it.
func (q *question) explain(ctx context.Context, out io.Writer) error {
	t := &survey.Tree{}
	err := q.grow(ctx, t)
	if _, printErr := io.WriteString(out, t.String()); printErr != nil {
		return printErr
	}
	if err != nil {
		return q.located(blame(ctx, q.snapshot, q.source, q.input, err))
	}
	return nil
}

func (q *question) grow(ctx context.Context, t *survey.Tree) error {
	explanation, explainErr := (&survey.Side{Source: q.source, Router: q.router}).Explain(ctx, &q.input)
	explanation.Grow(t)
	route, err := q.router.Route(ctx, q.input)
	if err != nil {
		return err
	}
	if route.Denied() {
		t.Add(0, "answer  denied")
	} else {
		t.Add(0, "answer  %s: %s", route.Action, route.Outcome())
	}
	for _, reason := range route.Reasons {
		t.Add(1, "%s", reason)
	}
	for _, warning := range route.Warnings {
		t.Add(1, "warning: %s", warning)
	}
	return explainErr
}

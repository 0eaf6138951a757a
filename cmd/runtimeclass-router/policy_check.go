package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

type policyCheckOptions struct {
	policyOptions
	output string
}

func newPolicyCheckCommand() *cobra.Command {
	o := &policyCheckOptions{}
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Say everything that keeps a policy from being put in force",
		Long: `Load a policy as the webhook would, and say what is wrong with it: syntax, misspelt
fields and rules, builtins that are not allowed, tests that fail. Then route the
self-test pods over the example cluster (or --cluster), each at every trust level, to
find what shows at run time only: conflicts, answers of the wrong shape, runtime classes
that do not exist, and pods that would run below the floor of their trust level.
What only other pods or another cluster would show is not found: write tests.

PATH is a directory of .rego files, one .rego file, a bundle (.tar.gz; its signature is
not checked), or the manifest of a ConfigMap (.yaml) whose keys are .rego files.

Each fault is a line "file:line:column: message (hint)". Later steps are not taken while
an earlier one finds faults, so mending one may show others.

A policy that is fine and slow, because OPA cannot plan one of its rules, is told of on
standard error.

Exit status: 0 if the policy is fine, 1 if it has faults.`,
		Example: `  runtimeclass-router policy check policy/
  runtimeclass-router policy check policy/ --cluster cluster.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0])
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text, or json (a list of objects: file, line, column, message, hint)")
	return cmd
}

func (o *policyCheckOptions) run(ctx context.Context, out, notes io.Writer, path string) error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output %q: use text or json", o.output)
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	cluster, _, err := o.state(ctx)
	if err != nil {
		return err
	}
	problems := []policies.Problem{}
	source, err := policies.Read(path)
	if err == nil {
		var modules policies.Modules
		if modules, err = source.Over(o.mode); err != nil {
			return err
		}
		err = o.check(ctx, notes, modules, config, cluster)
	}
	problems = append(problems, source.Problems(err)...)
	if o.output == "json" {
		if err := encodeJSON(out, problems); err != nil {
			return err
		}
		if len(problems) > 0 {
			return exitError{code: 1}
		}
		return nil
	}
	if len(problems) > 0 {
		return writeProblems(out, problems)
	}
	_, err = fmt.Fprintf(out, "%s: ok\n", path)
	return err
}

// check loads the policy, and routes the self-test pods with it.
func (o *policyOptions) check(ctx context.Context, notes io.Writer, modules policies.Modules, config policies.Config, cluster *catalog.Catalog) error {
	engine, err := o.engine(ctx, modules, config, cluster)
	if err != nil {
		return err
	}
	snapshot, err := engine.Snapshot()
	if err != nil {
		return err
	}
	if err := snapshot.Unplanned(); err != nil {
		if _, err := fmt.Fprintf(notes, "note: a new decision takes longer under this policy, because its rules cannot be planned: %v\n", err); err != nil {
			return err
		}
	}
	return webhook.CheckPolicy(ctx, snapshot)
}

// blame places a fault in the files of a source, where that can be told.
func blame(ctx context.Context, snapshot *policies.Snapshot, source *policies.Source, in policies.Input, err error) error {
	return webhook.Blame(ctx, snapshot, func(module string) bool { _, own := source.Modules[module]; return own }, in, err)
}

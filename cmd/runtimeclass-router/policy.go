package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

func newPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check, test, format and explain policies, and say what a change does",
		Long: `Commands for authors of policies. None of them needs a cluster.

A policy is a directory of .rego files. It adds to the shipped policy through the hooks
of package router.custom, or with --mode replace takes its place.`,
		Example: `  runtimeclass-router policy init policy/
  runtimeclass-router policy check policy/`,
	}
	cmd.AddCommand(newPolicyCheckCommand(), newPolicyTestCommand(), newPolicyFmtCommand(),
		newPolicyEvalCommand(), newPolicyInitCommand(), newPolicyDiffCommand())
	return cmd
}

// policyOptions say which policy, over which configuration and cluster.
type policyOptions struct {
	mode, configFile string
	cluster          []string
}

func (o *policyOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.mode, "mode", "extend", "extend: together with the shipped policy; replace: in its place")
	flags.StringVar(&o.configFile, "config", "", "the configuration file that the webhook runs with; its section router is what policies read")
	flags.StringArrayVar(&o.cluster, "cluster", nil, "a file or directory with the cluster's RuntimeClasses and Nodes, instead of the embedded example; may be repeated")
}

// config is the part of the configuration that policies read.
func (o *policyOptions) config() (policies.Config, error) {
	c, err := loadConfig(o.configFile)
	if err != nil {
		return policies.Config{}, err
	}
	if err := c.validate(); err != nil {
		return policies.Config{}, fmt.Errorf("configuration: %w", err)
	}
	return c.router, nil
}

// state is the cluster of --cluster, or the embedded example.
func (o *policyOptions) state(ctx context.Context) (*catalog.Catalog, map[string]*catalog.Namespace, error) {
	return (&routeOptions{cluster: o.cluster}).clusterState(ctx, &catalog.Manifests{})
}

// engine loads modules over the cluster.
func (o *policyOptions) engine(ctx context.Context, modules policies.Modules, config policies.Config, cluster *catalog.Catalog) (*policies.Engine, error) {
	engine := policies.NewEngine()
	if err := engine.Load(ctx, modules, config); err != nil {
		return nil, err
	}
	return engine, engine.SetCatalog(ctx, cluster)
}

// withoutTests are the modules that decide.
func withoutTests(modules policies.Modules) policies.Modules {
	production := maps.Clone(modules)
	maps.DeleteFunc(production, func(name, _ string) bool { return strings.HasSuffix(name, "_test.rego") })
	return production
}

// encodeJSON writes a value for programs and for people.
func encodeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// writeProblems prints problems, one a line, and ends the command with status 1.
func writeProblems(out io.Writer, problems []policies.Problem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(out, p); err != nil {
			return err
		}
	}
	return exitError{code: 1}
}

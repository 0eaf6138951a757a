package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/test/conformance"
	"github.com/runtimeclass-router/runtimeclass-router/test/conformance/cluster"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// The columns of the page.
const (
	none    = iota // no admission beyond Kubernetes' own
	obvious        // the policy of obvious-policy.yaml
	router         // the product
	columns
)

// measurement is what became of each shape, in the order of the shapes.
type measurement struct {
	outcomes   [columns][]conformance.Outcome
	kubernetes string // its version
}

var (
	clusterFile = filepath.Join("test", "conformance", "shapes", "cluster.yaml")
	policyFile  = filepath.Join("test", "conformance", "report", "obvious-policy.yaml")
)

func measure(ctx context.Context, shapes []conformance.Shape) (*measurement, error) {
	m := &measurement{}
	if err := m.withoutRouter(ctx, shapes); err != nil {
		return nil, err
	}
	return m, m.withRouter(ctx, shapes)
}

func (m *measurement) withoutRouter(ctx context.Context, shapes []conformance.Shape) (err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr, ControllerManager: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	c, err := client.New(plane.Config, client.Options{Scheme: stack.Scheme})
	if err != nil {
		return err
	}
	s := &stack.Stack{ControlPlane: plane, Client: c}
	if err := errors.Join(m.version(s), s.Apply(ctx, clusterFile), cluster.Prepare(ctx, c, shapes)); err != nil {
		return err
	}
	if m.outcomes[none], err = create(ctx, c, shapes); err != nil {
		return err
	}
	if err := s.Apply(ctx, policyFile); err != nil {
		return err
	}
	if err := waitForPolicy(ctx, c, shapes); err != nil {
		return err
	}
	m.outcomes[obvious], err = create(ctx, c, shapes)
	return err
}

func (m *measurement) withRouter(ctx context.Context, shapes []conformance.Shape) (err error) {
	s, err := stack.Start(ctx, stack.Options{Progress: os.Stderr, Cluster: []string{clusterFile}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := cluster.Prepare(ctx, s.Client, shapes); err != nil {
		return err
	}
	m.outcomes[router], err = create(ctx, s.Client, shapes)
	return err
}

func (m *measurement) version(s *stack.Stack) error {
	d, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		return err
	}
	version, err := d.ServerVersion()
	if err != nil {
		return err
	}
	m.kubernetes = version.GitVersion
	return nil
}

// create tries every shape where it belongs, or else in the untrusted namespace.
func create(ctx context.Context, c client.Client, shapes []conformance.Shape) ([]conformance.Outcome, error) {
	var outcomes []conformance.Outcome
	for i := range shapes {
		outcome, _, err := cluster.Create(ctx, c, &shapes[i], cluster.Namespaces(&shapes[i])[0], client.DryRunAll)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}

// waitForPolicy waits until the API server has noticed the policy: until the shape that
// is nothing but a container has a class.
func waitForPolicy(ctx context.Context, c client.Client, shapes []conformance.Shape) error {
	for i := range shapes {
		if shapes[i].Name != "bare" {
			continue
		}
		var last conformance.Outcome
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (_ bool, err error) {
			last, _, err = cluster.Create(ctx, c, &shapes[i], conformance.Untrusted, client.DryRunAll)
			return last.Class != "", err
		})
		if err != nil {
			return fmt.Errorf("wait for the policy of %s: %w (last answer: %s %s)", policyFile, err, &last, last.Message)
		}
		return nil
	}
	return errors.New("there is no shape bare")
}

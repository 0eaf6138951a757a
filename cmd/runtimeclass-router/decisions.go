package main

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/runtimeclass-router/runtimeclass-router/decisionlog"
)

// newDecisionLog makes what tells of decisions. In a pod the host's name is the pod's.
func (r *router) newDecisionLog(out io.Writer) error {
	instance, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find a name for the decision log: %w", err)
	}
	r.decisions, err = decisionlog.New(decisionlog.Config{
		Options:  r.config.DecisionLog,
		Out:      out,
		Recorder: r.manager.GetEventRecorder(reporter),
		Instance: instance,
		Version:  versionString(),
		Log:      r.log,
	})
	if err != nil {
		return fmt.Errorf("make the decision log: %w", err)
	}
	if err := metrics.Registry.Register(r.decisions); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

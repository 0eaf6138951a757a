package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// whyReport is the output of -o json.
type whyReport struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"` // kind/name of what made the pod
	// Runs is nil for what no cluster has run.
	Runs        *runs               `json:"runs,omitempty"`
	Recorded    *recorded           `json:"recorded,omitempty"`
	Today       today               `json:"today"`
	Differences []string            `json:"differences"`
	Labels      whyLabels           `json:"labels"`
	Steps       *survey.Explanation `json:"steps,omitempty"`
	// Policy is nil where none is asked.
	Policy *whyPolicy `json:"policy,omitempty"`
	// Read is what the answer rests on, Assumed what stands in for the rest.
	Read    []string `json:"read"`
	Assumed []string `json:"assumed"`

	level string // of trust, today's
	moves bool   // the next pod runs under another class
}

// runs is how a pod runs.
type runs struct {
	Phase            string `json:"phase"`
	RuntimeClassName string `json:"runtimeClassName"`
	NodeName         string `json:"nodeName"`
}

// recorded are the annotations of the pod, each empty where there is none.
type recorded struct {
	Trust          string `json:"trust"`
	Reason         string `json:"reason"`
	PolicyRevision string `json:"policyRevision"`
	Fallback       string `json:"fallback"`
}

// today is what would be decided now.
type today struct {
	Outcome          string            `json:"outcome"`
	Denied           bool              `json:"denied"`
	Action           policies.Action   `json:"action"`
	Mode             policies.Mode     `json:"mode"`
	Trust            string            `json:"trust"`
	RuntimeClassName string            `json:"runtimeClassName"`
	Isolation        catalog.Isolation `json:"isolation"`
	Reasons          []string          `json:"reasons"`
	Warnings         []string          `json:"warnings"`
	// Exception is the one of the configuration that lets the pod run below its floor.
	Exception *policies.Exception `json:"exception,omitempty"`
}

// whyLabels are those of the product.
type whyLabels struct {
	Namespace map[string]string `json:"namespace"`
	Pod       map[string]string `json:"pod"`
}

// whyPolicy is which policy answers.
type whyPolicy struct {
	From     string `json:"from"`
	Revision string `json:"revision"`
}

// newWhyReport says what is known before anything is decided.
func newWhyReport(s *survey.Subject) (*whyReport, error) {
	raw, err := s.Template.Pod(s.Document.Raw, s.Name)
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, err
	}
	r := &whyReport{
		Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Differences: []string{}, Read: []string{}, Assumed: []string{},
		Labels: whyLabels{Namespace: map[string]string{}, Pod: ours(pod.Labels)},
	}
	if s.Kind != "Pod" {
		return r, nil
	}
	if owner := s.Owner(); owner != "Pod/"+s.Name {
		r.Owner = owner
	}
	if pod.Status.Phase != "" {
		r.Runs = &runs{string(pod.Status.Phase), "", pod.Spec.NodeName}
		if pod.Spec.RuntimeClassName != nil {
			r.Runs.RuntimeClassName = *pod.Spec.RuntimeClassName
		}
	}
	if written := pod.Annotations; r.Runs != nil || len(ours(written)) > 0 {
		r.Recorded = &recorded{
			written[catalog.AnnotationTrust], written[catalog.AnnotationReason],
			written[catalog.AnnotationPolicyRevision], written[catalog.AnnotationFallback],
		}
	}
	return r, nil
}

// skipped is for a pod that the webhook has no say in.
func (r *whyReport) skipped(reason string) {
	r.Today = today{Outcome: "not decided", Action: policies.Exempt, Reasons: []string{reason}, Warnings: []string{}}
}

// decide asks the policy about the pod that would be created now.
func (r *whyReport) decide(ctx context.Context, side *survey.Side, in *policies.Input) error {
	verdict, err := side.Verdict(ctx, in)
	if err != nil {
		return err
	}
	// Its error is that of the verdict, which a policy error is: what was found out is said.
	r.Steps, _ = side.Explain(ctx, in)
	route := &verdict.Route
	r.level = route.Trust
	r.Today = today{
		Outcome: verdict.Said, Denied: verdict.Denied, Action: route.Action, Mode: route.Mode, Trust: route.Trust,
		RuntimeClassName: route.RuntimeClassName, Isolation: route.Isolation,
		Reasons: append([]string{}, verdict.Reasons...), Warnings: append([]string{}, route.Warnings...),
	}
	if route.Exception != "" {
		snapshot, err := side.Router.Engine.Snapshot()
		if err != nil {
			return err
		}
		for i := range snapshot.Config().Exceptions {
			if e := &snapshot.Config().Exceptions[i]; e.Name == route.Exception {
				r.Today.Exception = e
			}
		}
	}
	var own string
	if err := in.Pod.DecodeSpec("runtimeClassName", &own); err != nil {
		return err
	}
	r.compare(own)
	return nil
}

// compare says how a pod that runs differs from the next one, which names a class of its
// own or none.
func (r *whyReport) compare(own string) {
	if r.Runs == nil {
		return
	}
	differ := func(format string, args ...any) { r.Differences = append(r.Differences, fmt.Sprintf(format, args...)) }
	next := r.Today.RuntimeClassName
	if r.Today.Mode != policies.Enforce {
		next = own // nothing is changed
	}
	switch {
	case r.Today.Denied:
		differ("it runs under %s, and the next one would be refused", className(r.Runs.RuntimeClassName))
	case next != r.Runs.RuntimeClassName:
		r.moves = true
		differ("it runs under %s, and the next one would run under %s", className(r.Runs.RuntimeClassName), className(next))
	}
	if was := r.Recorded.Trust; was != "" && r.level != "" && was != r.level {
		differ("trust was recorded as %s, and is %s today", was, r.level)
	}
	if was := r.Recorded.PolicyRevision; was != "" && was != r.Policy.Revision {
		differ("revision %s is recorded, and %s answers here: another policy, configuration or version of the product", was, r.Policy.Revision)
	}
}

func className(name string) string { return cmp.Or(name, "the node's default runtime") }

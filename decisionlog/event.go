package decisionlog

import (
	"maps"
	"math"
	"time"
)

// event is a decision as OPA uploads it. The fields, and what a service does with them, are
// those of https://www.openpolicyagent.org/docs/management-decision-logs and of type EventV1
// in OPA's v1/plugins/logs, which cannot be imported without its server.
type event struct {
	Labels      map[string]string `json:"labels"`
	DecisionID  string            `json:"decision_id"`
	Bundles     map[string]bundle `json:"bundles,omitempty"`
	Path        string            `json:"path"`
	Input       input             `json:"input"`
	Result      *result           `json:"result,omitempty"`
	Error       *failure          `json:"error,omitempty"`
	RequestedBy string            `json:"requested_by"`
	Timestamp   time.Time         `json:"timestamp"`
	Metrics     map[string]int64  `json:"metrics"`
	Custom      custom            `json:"custom"`
}

type bundle struct {
	Revision string `json:"revision"`
}

// input has the shape of what the policy reads, and little of it.
type input struct {
	Request request `json:"request"`
	Pod     pod     `json:"pod"`
}

type request struct {
	Operation   string            `json:"operation"`
	SubResource string            `json:"subResource"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	DryRun      bool              `json:"dryRun"`
	UserInfo    map[string]string `json:"userInfo"`
}

type pod struct {
	Metadata struct {
		Name            string   `json:"name,omitempty"`
		GenerateName    string   `json:"generateName,omitempty"`
		OwnerReferences []*Owner `json:"ownerReferences,omitempty"`
	} `json:"metadata"`
	Spec struct {
		RuntimeClassName string `json:"runtimeClassName,omitempty"`
	} `json:"spec"`
}

// result is the decision, and what the API server was answered.
type result struct {
	Allowed          bool     `json:"allowed"`
	Action           string   `json:"action"`
	Trust            string   `json:"trust"`
	Isolation        string   `json:"isolation,omitempty"`
	RuntimeClassName string   `json:"runtimeClassName"`
	Reasons          []string `json:"reasons,omitempty"`
	Warnings         []string `json:"warnings,omitempty"`
	Exception        string   `json:"exception,omitempty"`
}

// failure is shaped like OPA's own errors.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// custom is what OPA's other fields have no room for.
type custom struct {
	Webhook string `json:"webhook"`
	Mode    string `json:"mode,omitempty"`
	Source  string `json:"source,omitempty"`
}

// decisionPath is the query of every decision, as OPA's API would spell it.
const decisionPath = "router/decision"

// app names the product in labels, and its policy among the bundles.
const app = "runtimeclass-router"

// ownLabels are what tells this process from others.
func ownLabels(instance, version string) map[string]string {
	return map[string]string{"app": app, "id": instance, "version": version}
}

func labelsOf(c *Config) map[string]string {
	labels := ownLabels(c.Instance, c.Version)
	maps.Copy(labels, c.Upload.Labels)
	return labels
}

func newEvent(e *Entry, labels map[string]string) *event {
	v := &event{
		Labels:     labels,
		DecisionID: e.DecisionID,
		Path:       decisionPath,
		Input: input{Request: request{
			Operation: e.Operation, SubResource: e.SubResource, Namespace: e.Namespace, Name: e.Name, DryRun: e.DryRun,
			UserInfo: map[string]string{"username": e.User},
		}},
		RequestedBy: e.User,
		Timestamp:   e.Time,
		Metrics:     map[string]int64{"timer_server_handler_ns": int64(math.Round(e.DurationSeconds * 1e9))},
		Custom:      custom{Webhook: e.Webhook, Mode: e.Mode, Source: e.Source},
	}
	v.Input.Pod.Metadata.Name, v.Input.Pod.Metadata.GenerateName = e.Name, e.GenerateName
	if e.Owner != nil {
		v.Input.Pod.Metadata.OwnerReferences = []*Owner{e.Owner}
	}
	v.Input.Pod.Spec.RuntimeClassName = e.PreviousRuntimeClassName
	if e.PolicyRevision != "" {
		v.Bundles = map[string]bundle{app: {e.PolicyRevision}}
	}
	if e.Error != nil {
		v.Error = &failure{e.Error.Kind, e.Error.Message}
		return v
	}
	v.Result = &result{
		Allowed: e.Allowed, Action: e.Action, Trust: e.Trust, Isolation: e.Isolation,
		RuntimeClassName: e.RuntimeClassName, Reasons: e.Reasons, Warnings: e.Warnings, Exception: e.Exception,
	}
	return v
}

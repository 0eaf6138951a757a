package decisionlog

import (
	"strings"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// Entry is what is told of one decision, and its JSON is a line of the log. It has no field
// for a container, an annotation or a label: what is not there cannot leak. Reasons, warnings
// and errors are the words of the policy and of the product, as the pod's creator gets them.
type Entry struct {
	// Log is always "decision": it tells the line from others of the same stream.
	Log  string    `json:"log"`
	Time time.Time `json:"time"`
	// DecisionID is the UID of the review, and the audit annotation decision-id.
	DecisionID string `json:"decisionID"`
	// Webhook is the endpoint that was asked: mutate-pod or validate-pod.
	Webhook      string `json:"webhook"`
	Operation    string `json:"operation"`
	SubResource  string `json:"subResource,omitempty"`
	Namespace    string `json:"namespace"`
	Name         string `json:"name,omitempty"`
	GenerateName string `json:"generateName,omitempty"`
	Owner        *Owner `json:"owner,omitempty"`
	User         string `json:"user"`
	DryRun       bool   `json:"dryRun"`
	// Allowed is what the API server was answered; Action is what was decided, which counts in
	// mode enforce. Action is empty where nothing could be decided.
	Allowed bool   `json:"allowed"`
	Mode    string `json:"mode,omitempty"`
	Action  string `json:"action,omitempty"`
	Trust   string `json:"trust,omitempty"`
	// Isolation is that of the class that the pod ends up with.
	Isolation                string   `json:"isolation,omitempty"`
	RuntimeClassName         string   `json:"runtimeClassName"`
	PreviousRuntimeClassName string   `json:"previousRuntimeClassName"`
	Reasons                  []string `json:"reasons,omitempty"`
	Warnings                 []string `json:"warnings,omitempty"`
	Exception                string   `json:"exception,omitempty"`
	PolicyRevision           string   `json:"policyRevision,omitempty"`
	// Source is where the decision came from: remembered, or evaluated by the policy.
	Source string `json:"source,omitempty"`
	// DurationSeconds is the time from the decoded review to the decision.
	DurationSeconds float64  `json:"durationSeconds"`
	Error           *Failure `json:"error,omitempty"`
}

// Owner is the controller that a pod names.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Failure is why nothing could be decided.
type Failure struct {
	// Kind is as runtimeclass_router_errors_total counts it.
	Kind string `json:"kind"`
	// Message is left out where a pod cannot be read: a decoder quotes what it stumbles over.
	Message string `json:"message,omitempty"`
}

// undecodable is the kind of error that quotes a pod.
const undecodable = "undecodable"

const (
	// maxName bounds what others choose. Kubernetes' own names are shorter.
	maxName = 256
	// maxWords bounds all reasons, or all warnings, of one decision, and an error.
	maxWords = 8 << 10
)

func newEntry(d *webhook.Decision) *Entry {
	r := &d.Route
	e := &Entry{
		Log:             "decision",
		Time:            d.Started.UTC(),
		DecisionID:      string(d.Request.UID),
		Webhook:         strings.TrimPrefix(d.Path, "/"),
		Operation:       string(d.Request.Operation),
		SubResource:     d.Request.SubResource,
		Namespace:       d.Request.Namespace,
		Name:            clip(d.Request.Name, maxName),
		User:            clip(d.Request.UserInfo.Username, maxName),
		DryRun:          d.DryRun(),
		Allowed:         d.Response.Allowed,
		Mode:            string(r.Mode),
		PolicyRevision:  r.PolicyRevision,
		DurationSeconds: d.Elapsed.Seconds(),
	}
	e.identify(d.Input.Pod)
	if d.Err != nil {
		e.Error = &Failure{Kind: d.ErrorKind()}
		if e.Error.Kind != undecodable {
			e.Error.Message = clip(d.Err.Error(), maxWords)
		}
		return e
	}
	e.Action, e.Trust, e.Isolation, e.Exception = string(r.Action), r.Trust, string(r.Isolation), r.Exception
	e.RuntimeClassName, e.PreviousRuntimeClassName = r.RuntimeClassName, r.PreviousRuntimeClassName
	e.Reasons, e.Warnings = clipAll(r.Reasons), clipAll(r.Warnings)
	e.Source = "evaluated"
	if r.Remembered {
		e.Source = "remembered"
	}
	return e
}

// identify takes of a pod its name and its owner. What cannot be read is left out: the API
// server refuses such a pod, whatever was decided.
func (e *Entry) identify(pod *policies.Pod) {
	if pod == nil {
		return
	}
	var name, generateName string
	if e.Name == "" && pod.DecodeMetadata("name", &name) == nil {
		e.Name = clip(name, maxName)
	}
	if pod.DecodeMetadata("generateName", &generateName) == nil {
		e.GenerateName = clip(generateName, maxName)
	}
	if owner, err := pod.Controller(); err == nil && owner != nil {
		e.Owner = &Owner{
			APIVersion: clip(owner.APIVersion, maxName), Kind: clip(owner.Kind, maxName),
			Name: clip(owner.Name, maxName), UID: clip(string(owner.UID), maxName),
		}
	}
}

const cut = "..."

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(cut)], "") + cut
}

func clipAll(words []string) []string {
	room := maxWords
	for i, word := range words {
		if len(word) > room {
			return append(words[:i:i], clip(word, max(room, len(cut))))
		}
		room -= len(word)
	}
	return words
}

package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// Action is what a policy answers for a pod.
type Action string

// The actions. Route runs the pod under the named class; Keep leaves its class as
// it is, and so does Exempt, for a pod that is none of the router's business; Deny
// refuses the pod.
const (
	Route  Action = "route"
	Keep   Action = "keep"
	Deny   Action = "deny"
	Exempt Action = "exempt"
)

// Decision is what data.router.decision evaluates to. schemas/decision.json is
// the same in JSON schema.
type Decision struct {
	Action Action `json:"action"`
	// Trust is one of the configured levels.
	Trust string `json:"trust"`
	// RuntimeClassName is the class to run under, for Route; "" there means the
	// node's default runtime. Other actions may repeat the pod's own.
	RuntimeClassName string `json:"runtimeClassName"`
	// NodeSelector and Tolerations are placement beyond what the class's own
	// scheduling says, which is applied always.
	NodeSelector map[string]string   `json:"nodeSelector"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
	// Reasons say why, for the developer: the first one stands alone.
	Reasons []string `json:"reasons"`
	// Warnings are shown to whoever creates the pod.
	Warnings []string `json:"warnings"`

	// Remembered tells that an earlier pod was answered so, and the policy was not asked.
	Remembered bool `json:"-"`
}

// decodeDecision reads the value of the query strictly: an unknown, misspelt or
// missing key is a [Fault] of kind [BadShape].
func decodeDecision(value any) (Decision, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return Decision{}, &Fault{Kind: BadShape, Err: err}
	}
	var d Decision
	if err := unmarshalStrict(raw, &d); err != nil {
		return Decision{}, &Fault{Kind: BadShape, Err: err}
	}
	if actions := []Action{Route, Keep, Deny, Exempt}; !slices.Contains(actions, d.Action) {
		return Decision{}, &Fault{Kind: BadShape, Err: fmt.Errorf("action %q is not one of %v", d.Action, actions)}
	}
	if d.Trust == "" {
		return Decision{}, &Fault{Kind: BadShape, Err: fmt.Errorf("trust is missing")}
	}
	return d, nil
}

// unmarshalStrict decodes JSON the way the API server reads fields: keys are
// case-sensitive and given once, and those that the type lacks are errors, all of
// which are returned.
func unmarshalStrict(raw []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}

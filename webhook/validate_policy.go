package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// ValidatePolicyPath is the path of [PolicyValidator].
const ValidatePolicyPath = "/validate-policy"

// PolicyDeadline bounds the check of one ConfigMap. It lies below the timeout of the
// webhook configuration (10 s, the longest that a person who applies a policy should
// wait), so that the answer says what happened. A policy of some files takes half a
// second, with tests.
const PolicyDeadline = 9 * time.Second

// PolicyOptions are what a [PolicyValidator] needs.
type PolicyOptions struct {
	// Engine loads policies, with the configuration and over the catalog that it has.
	Engine *policies.Engine
	// Files returns all files of the policy as it would be loaded now, those of a
	// ConfigMap named NAME/KEY. Nil stands for the shipped policy. Files beside an error
	// are gone on with.
	Files   func() (policies.Modules, error)
	Metrics *Metrics
	Log     logr.Logger
}

// PolicyValidator answers the reviews of [ValidatePolicyPath]: ConfigMaps that carry
// policy are refused for what [policies.Engine.Load] would refuse, so that an author
// reads at `kubectl apply` what is wrong and where.
type PolicyValidator struct {
	PolicyOptions
	deadline time.Duration
	turn     sync.Mutex
}

var _ admission.Handler = (*PolicyValidator)(nil)

// NewPolicyValidator returns a validator.
func NewPolicyValidator(options PolicyOptions) *PolicyValidator {
	return &PolicyValidator{PolicyOptions: options, deadline: PolicyDeadline}
}

// maxAbandoned is how many evaluations may be left behind before no more is begun:
// each takes a processor from the pods that wait for their decision.
const maxAbandoned = 2

// Handle implements admission.Handler.
func (v *PolicyValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update || request.SubResource != "" {
		return admission.Allowed("")
	}
	var configMap corev1.ConfigMap
	if err := json.Unmarshal(request.Object.Raw, &configMap); err != nil {
		return v.answer(&request, nil, fmt.Errorf("%w ConfigMap: %w", ErrUndecodable, err))
	}
	if configMap.Labels[catalog.LabelPolicy] != catalog.PolicyLabelValue {
		// Sent because it was labelled before.
		return admission.Allowed("")
	}
	configMap.Name = cmp.Or(request.Name, configMap.Name, configMap.GenerateName)
	if v.Engine.Abandoned() >= maxAbandoned || !v.turn.TryLock() {
		return v.answer(&request, nil, fmt.Errorf("%w: another policy is being checked, try again in a few seconds", errBusy))
	}
	defer v.turn.Unlock()
	// What was accepted is answered also when the server is told to end; see bounded.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.deadline)
	defer cancel()
	verdict, err := v.judge(ctx, &configMap)
	return v.answer(&request, verdict, err)
}

// verdict is what is wrong with a policy.
type verdict struct {
	refused []policies.Problem
	// warned are faults that were there before, and are somebody else's.
	warned []policies.Problem
	empty  bool
}

func (v *PolicyValidator) judge(ctx context.Context, configMap *corev1.ConfigMap) (*verdict, error) {
	own, err := policies.ConfigMapModules(configMap)
	if err != nil {
		return &verdict{refused: policies.Problems(err)}, nil
	}
	now, err := v.files()
	if now == nil {
		return nil, err
	}
	next := maps.Clone(now)
	maps.DeleteFunc(next, func(name, _ string) bool { return strings.HasPrefix(name, configMap.Name+"/") })
	maps.Copy(next, own)
	snapshot, err := v.Engine.Snapshot()
	if err != nil {
		return nil, err
	}
	err = v.Engine.Try(ctx, next, *snapshot.Config())
	if timedOut(err) {
		return nil, fmt.Errorf("the policy cannot be checked in %s, try again, or find out why it takes so long by `runtimeclass-router policy check`: %w", v.deadline, err)
	}
	found := &verdict{refused: policies.Problems(err), empty: len(own) == 0}
	if len(found.refused) > 0 && !concerns(found.refused, own) && v.Engine.Try(ctx, now, *snapshot.Config()) != nil {
		// Two that are both broken could never be mended, one after the other.
		found.warned, found.refused = found.refused, nil
	}
	return found, nil
}

// concerns reports whether a fault lies in those files, or has no place.
func concerns(found []policies.Problem, files policies.Modules) bool {
	for _, p := range found {
		if _, ok := files[p.File]; ok || p.File == "" {
			return true
		}
	}
	return false
}

// files are those of the policy as it is now.
func (v *PolicyValidator) files() (policies.Modules, error) {
	if v.Files == nil {
		return policies.Shipped(), nil
	}
	return v.Files()
}

func (v *PolicyValidator) answer(request *admission.Request, verdict *verdict, err error) admission.Response {
	route := &Route{Action: policies.Keep, Mode: policies.Enforce}
	log := v.Log.WithValues("requestID", request.UID, "namespace", request.Namespace, "name", request.Name)
	switch {
	case err != nil:
		log.Error(err, "policy ConfigMap is not checked", "kind", classify(err).metric)
	case len(verdict.refused) > 0:
		route.Action, route.Reasons = policies.Deny, []string{list(verdict.refused)}
		log.Info("policy ConfigMap refused", "problems", route.Reasons[0])
	}
	v.Metrics.validated("policies", route, err)
	if err != nil || route.Action == policies.Deny {
		return respond(route, err)
	}
	var warnings []string
	if len(verdict.warned) > 0 {
		warnings = append(warnings, "the policy is not put in force, as before this change: "+list(verdict.warned))
	}
	if verdict.empty {
		warnings = append(warnings, "the ConfigMap carries the label "+catalog.LabelPolicy+" and holds no file")
	}
	return admission.Allowed("").WithWarnings(prefixed(warnings)...)
}

// list is the problems on one line, as many as a message holds.
func list(problems []policies.Problem) string {
	const more = "; and %d more, which runtimeclass-router policy check lists"
	room := maxMessage - len("runtimeclass-router: ") - len(more) - len("9999")
	var s strings.Builder
	for i, p := range problems {
		line := p.String()
		if i > 0 && s.Len()+len("; ")+len(line) > room {
			fmt.Fprintf(&s, more, len(problems)-i)
			break
		}
		if i > 0 {
			s.WriteString("; ")
		}
		if len(line) > room {
			line = strings.ToValidUTF8(line[:room-len("...")], "") + "..."
		}
		s.WriteString(line)
	}
	return s.String()
}

package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// selfTestPods are shapes that any policy meets in its first hour. A conflict of
// rules and a builtin that errs show at run time only, so each is asked before the
// policy is in force.
var selfTestPods = map[string]string{
	"plain":        `{"containers": [{"name": "c", "image": "i"}]}`,
	"with a class": `{"runtimeClassName": "selftest", "containers": [{"name": "c", "image": "i"}]}`,
	"host network": `{"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]}`,
	"privileged": `{"initContainers": [{"name": "i", "image": "i", "securityContext": {"privileged": true}}],
		"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}`,
	"volumes": `{"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
		"volumes": [{"name": "h", "hostPath": {"path": "/x"}}, {"name": "e", "emptyDir": {}}],
		"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "h", "mountPath": "/h"}]}]}`,
}

// selfTest asks the policy about every self-test pod at every trust level, over a
// catalog without classes.
func selfTest(ctx context.Context, p *policy) error {
	s, err := newSnapshot(ctx, p, catalog.Build(nil, nil))
	if err != nil {
		return err
	}
	labels := []map[string]string{nil}
	for _, level := range p.config.Levels {
		labels = append(labels, map[string]string{catalog.LabelTrust: level.Name})
	}
	var errs []error
	for name, spec := range selfTestPods {
		for _, l := range labels {
			in := Input{
				Request:   Request{Operation: "CREATE", Namespace: "selftest", Name: "selftest", Date: "2000-01-01"},
				Namespace: catalog.Namespace{Name: "selftest", Labels: l},
				Pod: json.RawMessage(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "selftest", "namespace": "selftest"}, "spec": ` +
					spec + `}`),
			}
			if _, err := s.Decide(ctx, in); err != nil {
				errs = append(errs, fmt.Errorf("self-test pod %q in a namespace labelled %v: %w", name, l, err))
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return len(a.Error()) - len(b.Error()) })
	return errors.Join(errs...)
}

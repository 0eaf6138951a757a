package policies

import (
	"errors"
	"fmt"
	"maps"
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

// SelfTest is one question of the self-test.
type SelfTest struct {
	// Name is the pod's shape; Labels are those of its namespace.
	Name   string
	Labels map[string]string
	Input  Input
}

// SelfTestError is a question of the self-test that was not answered.
type SelfTestError struct {
	Test SelfTest
	Err  error
}

// Error implements error.
func (e *SelfTestError) Error() string {
	return fmt.Sprintf("self-test pod %q in a namespace labelled %v: %v", e.Test.Name, e.Test.Labels, e.Err)
}

// Unwrap returns what went wrong.
func (e *SelfTestError) Unwrap() error { return e.Err }

// RunSelfTests asks about every self-test pod in a namespace without labels and at
// every trust level. The error joins a [SelfTestError] for each that ask fails on.
func RunSelfTests(config *Config, ask func(SelfTest) error) error {
	labels := []map[string]string{nil}
	for _, level := range config.Levels {
		labels = append(labels, map[string]string{catalog.LabelTrust: level.Name})
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(selfTestPods)) {
		pod, err := ReadPod([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "selftest", "namespace": "selftest"}, "spec": ` + selfTestPods[name] + `}`))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, l := range labels {
			test := SelfTest{Name: name, Labels: l, Input: Input{
				Request:   Request{Operation: "CREATE", Namespace: "selftest", Name: "selftest", Date: "2000-01-01"},
				Namespace: catalog.Namespace{Name: "selftest", Labels: l},
				Pod:       pod,
			}}
			if err := ask(test); err != nil {
				errs = append(errs, &SelfTestError{Test: test, Err: err})
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return len(a.Error()) - len(b.Error()) })
	return errors.Join(errs...)
}

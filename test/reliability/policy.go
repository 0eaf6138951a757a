package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// movedTo is the class that the policy gives.
const movedTo = "kata-qemu"

const (
	good     = "package router.custom\n\ncandidates contains [\"" + movedTo + "\"] if input.pod.metadata.labels[\"" + moved + "\"] == \"true\"\n"
	misspelt = "package router.custom\n\ndenials contains \"never\" if input.pod.spec.hostNetwrok\n"
)

// policyStatus is what is read of a replica's status.
type policyStatus struct {
	Policy struct {
		Revision string
		Errors   []string
	}
}

// reloadPolicy has a policy put in force, a broken one refused, and the first one restored.
func (h *harness) reloadPolicy(ctx context.Context) (string, error) {
	var original string
	if err := h.awaitPolicy(ctx, func(s *policyStatus) error {
		if original == "" {
			original = s.Policy.Revision
		}
		return differs(original, s.Policy.Revision, true)
	}); err != nil {
		return "", err
	}
	changed := policyMap("reliability", good)
	h.expect("gvisor", movedTo)
	if err := h.Client.Create(ctx, changed); err != nil {
		return "", err
	}
	var inForce string
	if err := h.awaitPolicy(ctx, func(s *policyStatus) error {
		inForce = s.Policy.Revision
		return differs(original, inForce, false)
	}); err != nil {
		return "", err
	}
	h.expect(movedTo)

	refusal := "was refused when it was applied"
	broken := policyMap("reliability-broken", misspelt)
	switch err := h.Client.Create(ctx, broken); {
	case err == nil:
		// The check of policies is a courtesy that may take ten seconds and no more.
		refusal = "was applied unchecked, and not put in force"
		if err := h.awaitPolicy(ctx, func(s *policyStatus) error {
			if len(s.Policy.Errors) == 0 {
				return errors.New("no error is told")
			}
			return differs(inForce, s.Policy.Revision, true)
		}); err != nil {
			return "", err
		}
		if err := h.Client.Delete(ctx, broken); err != nil {
			return "", err
		}
	case !strings.Contains(err.Error(), "hostNetwrok"):
		return "", fmt.Errorf("apply a broken policy: %w", err)
	}
	h.expect("gvisor", movedTo)
	if err := h.Client.Delete(ctx, changed); err != nil {
		return "", err
	}
	if err := h.awaitPolicy(ctx, func(s *policyStatus) error { return differs(original, s.Policy.Revision, true) }); err != nil {
		return "", err
	}
	h.expect("gvisor")
	return fmt.Sprintf("revision %s, %s, %s; the one that does not compile %s", original, inForce, original, refusal), nil
}

// differs returns an error unless two revisions are the same, or are not.
func differs(want, got string, same bool) error {
	if got == "" || (want == got) != same {
		return fmt.Errorf("revision %q in force, and before it was %q", got, want)
	}
	return nil
}

// awaitPolicy waits until check returns nil of each replica.
func (h *harness) awaitPolicy(ctx context.Context, check func(*policyStatus) error) error {
	var last error
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = nil
		for _, router := range h.Service.Routers() {
			var status policyStatus
			err := getJSON(ctx, router.StatusURL, &status)
			if err == nil {
				err = check(&status)
			}
			last = errors.Join(last, err)
		}
		return last == nil, nil
	}); err != nil {
		return fmt.Errorf("wait for the policy: %w (last: %w)", err, last)
	}
	return nil
}

func getJSON(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// policyMap is a ConfigMap with policy.
func policyMap(name, source string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: stack.Namespace, Labels: map[string]string{catalog.LabelPolicy: catalog.PolicyLabelValue}},
		Data:       map[string]string{"custom.rego": source},
	}
}

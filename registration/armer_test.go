package registration

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// stored are both configurations as the chart renders them: without rules.
func stored(t *testing.T) (*fake.Clientset, *Registration) {
	t.Helper()
	service := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "router", Namespace: "system", Path: &path}}
	}
	m := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "router"}}
	v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "router"}}
	for name := range Rules() {
		if name == "pods.runtimeclass-router.io" {
			m.Webhooks = append(m.Webhooks, admissionregistrationv1.MutatingWebhook{Name: name, ClientConfig: service("/m")})
		} else {
			v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name, ClientConfig: service("/v")})
		}
	}
	clients := fake.NewClientset(m, v)
	return clients, New(clients.AdmissionregistrationV1(), "router")
}

func mustHooks(t *testing.T, r *Registration) []Hook {
	t.Helper()
	hooks, err := r.Hooks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

// TestInjectAndArmDoNotUndoEachOther: they are two field managers.
func TestInjectAndArmDoNotUndoEachOther(t *testing.T) {
	t.Parallel()
	clients, r := stored(t)
	for range 2 {
		if err := errors.Join(r.Inject(t.Context(), mustHooks(t, r), []byte("CA")), r.Arm(t.Context(), mustHooks(t, r))); err != nil {
			t.Fatal(err)
		}
	}
	hooks := mustHooks(t, r)
	if !Armed(hooks) || len(hooks) != len(Rules()) {
		t.Errorf("%d hooks, armed %t", len(hooks), Armed(hooks))
	}
	for _, hook := range hooks {
		if string(hook.CABundle) != "CA" || hook.ServerName != "router.system.svc" {
			t.Errorf("%s: caBundle %q, server %s", hook.Name, hook.CABundle, hook.ServerName)
		}
	}
	patches := 0
	for _, action := range clients.Actions() {
		if action.GetVerb() == "patch" {
			patches++
		}
	}
	if patches != 4 {
		t.Errorf("%d patches, want one of each manager for each object: what is there already is not applied", patches)
	}
	if err := r.Inject(t.Context(), mustHooks(t, r), []byte("other")); err != nil || !Armed(mustHooks(t, r)) {
		t.Errorf("another CA disarms: %v", err)
	}
}

// TestArmer waits for what it must, arms, and puts back what is lost.
func TestArmer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clients, r := stored(t)
		var ready atomic.Bool
		a := &Armer{Registration: r, Log: logr.Discard(), Ready: func([]Hook) error {
			if !ready.Load() {
				return errors.New("no policy")
			}
			return nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		var settled atomic.Int32
		done := make(chan error)
		go func() { done <- a.Run(ctx, func() { settled.Add(1) }) }()
		defer func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		if time.Sleep(time.Minute); Armed(mustHooks(t, r)) || settled.Load() > 0 {
			t.Fatal("armed before it is ready")
		}
		ready.Store(true)
		if time.Sleep(2 * time.Second); !Armed(mustHooks(t, r)) || settled.Load() == 0 {
			t.Fatal("not armed when it is ready")
		}
		// A replica of another version has other rules, and is not undone.
		configurations := clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
		m, err := configurations.Get(t.Context(), "router", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Webhooks[0].Rules[0].Operations = slices.Insert(m.Webhooks[0].Rules[0].Operations, 0, admissionregistrationv1.Update)
		if m, err = configurations.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if time.Sleep(time.Minute); len(mustHooks(t, r)[0].Rules[0].Operations) != 2 {
			t.Error("another version's rules are undone")
		}
		m.Webhooks[0].Rules = nil
		if _, err := configurations.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if time.Sleep(2 * look); !Armed(mustHooks(t, r)) {
			t.Error("what was disarmed stays so")
		}
		// The break-glass: nothing is made anew.
		if err := configurations.Delete(t.Context(), "router", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		before := settled.Load()
		time.Sleep(time.Minute)
		if _, err := configurations.Get(t.Context(), "router", metav1.GetOptions{}); err == nil || settled.Load() == before || a.armed.Load() {
			t.Error("what was deleted is made anew, or waited for")
		}
	})
}

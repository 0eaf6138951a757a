package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
	"github.com/runtimeclass-router/runtimeclass-router/test/stack"
)

// patience bounds a wait; it is no expectation.
const patience = 5 * time.Minute

// harness is the product under load.
type harness struct {
	*options
	*stack.Stack
	load     *load
	logs     []string // of every replica that there was
	progress io.Writer
}

// measure does one thing after the other while pods are created. An error is one of the
// run: what became of the pods is the report's to say.
func measure(ctx context.Context, o *options, progress io.Writer) (_ *report, err error) {
	machine, err := results.ThisMachine()
	if err != nil {
		return nil, err
	}
	s, err := stack.Start(ctx, stack.Options{Progress: progress, Cluster: []string{filepath.Join("examples", "cluster.yaml")}, Replicas: o.replicas})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	h := &harness{options: o, Stack: s, load: &load{namespace: "tenants"}, progress: progress}
	for _, router := range s.Service.Routers() {
		h.logs = append(h.logs, router.Log)
	}
	h.expect("gvisor")
	if err := errors.Join(h.createNamespace(ctx, h.load.namespace, "untrusted"), h.createNamespace(ctx, relabelled, "trusted")); err != nil {
		return nil, err
	}
	r := &report{Machine: machine, Clients: o.clients, Replicas: o.replicas}
	if err := h.disturb(ctx, r); err != nil {
		return nil, err
	}
	return r, h.checkLogs()
}

// disturb goes through the table.
func (h *harness) disturb(ctx context.Context, r *report) error {
	loading, end := context.WithCancel(ctx)
	defer h.load.running.Wait()
	defer end()
	share := (h.pods + len(disturbances) - 1) / len(disturbances)
	for i := range disturbances {
		w := newWindow(&disturbances[i], h.Service.Events())
		h.say("%s", w.Name)
		h.load.enter(w)
		if i == 0 {
			if err := h.load.start(loading, h.Config, h.clients); err != nil {
				return err
			}
		} else {
			h.settle(r.Windows[i-1])
		}
		r.Windows = append(r.Windows, w)
		var err error
		if w.Note, err = w.run(h, ctx); err != nil {
			return fmt.Errorf("%s: %w; %v", w.Name, err, w.messages())
		}
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return w.Created() >= share, nil
		}); err != nil {
			return fmt.Errorf("%s: wait for %d pods: %w (there are %d; %v)", w.Name, share, err, w.Created(), w.messages())
		}
	}
	end()
	h.load.running.Wait()
	h.settle(r.Windows[len(r.Windows)-1])
	return nil
}

// settle closes a window that no call is open of.
func (h *harness) settle(w *window) {
	w.close(h.Service.Events())
	h.say("%s; %d created in %s, %d refused by the API server, %d in flight, %d late, %d and %d faults", w.Note, w.Created(),
		w.Took.Round(time.Second), w.APIServer(), w.InFlight(), w.Late(), w.Ours(), w.Wrong())
	for message, n := range w.said {
		h.say("  %d times: %s", n, message)
	}
}

func (h *harness) say(format string, args ...any) {
	fmt.Fprintf(h.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// expect says which classes the pods that the policy moves may come out with from now on.
func (h *harness) expect(classes ...string) { h.load.moved.Store(&classes) }

// relabelled is the namespace that becomes untrusted after the API server was away.
const relabelled = "tenants-after"

func (h *harness) createNamespace(ctx context.Context, name, trust string) error {
	return h.CreateNamespace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{catalog.LabelTrust: trust}}})
}

// checkLogs finds what no answer shows.
func (h *harness) checkLogs() error {
	var errs []error
	told := map[string]int{} // errors, which the API server's absence explains
	for _, path := range h.logs {
		log, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(log) {
			var entry struct{ Level, Msg string }
			if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
				told[entry.Msg]++
			}
		}
		for _, fault := range []string{"DATA RACE", "panic: "} {
			if _, after, found := bytes.Cut(log, []byte(fault)); found {
				errs = append(errs, fmt.Errorf("%s has a %s%s", filepath.Base(path), fault, after[:min(len(after), 2000)]))
			}
		}
	}
	for message, n := range told {
		h.say("logged %d times: %s", n, message)
	}
	return errors.Join(errs...)
}

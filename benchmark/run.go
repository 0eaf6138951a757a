package benchmark

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// callTimeout bounds one call of the API server: longer than its webhooks may take.
const callTimeout = 40 * time.Second

// goneTimeout bounds the wait for a pod to leave its node.
const goneTimeout = 30 * time.Second

// faults is how many pods of a class may fail before it is given up.
const faults = 3

// Runner carries a plan out.
type Runner struct {
	Client kubernetes.Interface
	// Progress is told how many pods are through, one call at a time.
	Progress func(done int)
}

// Results are what came of a plan.
type Results struct {
	// Measurements are in no order. Samples of a class that was given up are missing.
	Measurements []Measurement
	// GivenUp says by class why its rest was not measured.
	GivenUp map[string]error
}

// Run creates the pods of a plan, measures them and deletes them. It deletes them also
// where ctx ends or something fails, and does not return before; what it could not
// delete is in the error.
func (r *Runner) Run(ctx context.Context, p *Plan) (_ *Results, err error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	w, err := startWatch(watching, r.Client, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.sweep(context.WithoutCancel(ctx), p)) }()
	t := &tally{results: Results{GivenUp: map[string]error{}}, succeeded: map[string]int{}, failed: map[string]int{}, progress: r.Progress}
	for _, phase := range p.Phases {
		group := &errgroup.Group{}
		group.SetLimit(phase.Parallel)
		for i := range phase.Samples {
			group.Go(func() error {
				if s := &phase.Samples[i]; ctx.Err() == nil && !t.gaveUp(s.Class) {
					t.add(r.measure(ctx, w, p, s))
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted after %d of %d pods: %w", len(t.results.Measurements), p.Total(), context.Cause(ctx))
	}
	return &t.results, nil
}

// measure sees one pod through, and has it deleted when it returns.
func (r *Runner) measure(ctx context.Context, w *watch, p *Plan, s *Sample) Measurement {
	subject := w.expect(s.Pod)
	defer w.forget(s.Pod)
	failed := func(err error) Measurement {
		return Measurement{Sample: *s, Node: nodeOf(subject), Err: err}
	}
	if err := r.create(ctx, p, s, false); err != nil {
		return failed(err)
	}
	created := time.Now()
	defer r.remove(ctx, p, s, subject)
	timeout := time.NewTimer(p.Timeout)
	defer timeout.Stop()
	select {
	case <-subject.over:
		o := subject.observed()
		return o.measured(s, created)
	case <-subject.gone:
		return failed(errors.New("somebody deleted the pod"))
	case <-timeout.C:
		o := subject.observed()
		return failed(fmt.Errorf("not done in %s: %s", p.Timeout, o.waiting()))
	case <-ctx.Done():
		return failed(context.Cause(ctx))
	}
}

// ReplacedError is of a pod that would not run, or does not, under the class that it
// asked for. What it measures would be another class's.
type ReplacedError struct{ Asked, Got string }

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("a pod that asks for runtime class %s is admitted with %s: measure in a namespace that may run it", e.Asked, cmp.Or(e.Got, "none"))
}

// create creates the pod as it is planned, or as a dry run. What the cluster made
// another class of is left to be deleted. It is not broken off when ctx ends: a pod that
// is created behind the back of the sweep would stay.
func (r *Runner) create(ctx context.Context, p *Plan, s *Sample, dryRun bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	options := metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	pod, err := r.Client.CoreV1().Pods(p.Namespace).Create(ctx, p.Pod(s), options)
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	if got := ptr.Deref(pod.Spec.RuntimeClassName, ""); got != s.Class {
		return &ReplacedError{Asked: s.Class, Got: got}
	}
	return nil
}

// Check asks the API server, by dry runs, whether pods of each class would be admitted
// as they are. It returns why not, by class, and creates nothing.
func (r *Runner) Check(ctx context.Context, p *Plan) map[string]error {
	refused := map[string]error{}
	samples, _ := p.Distinct()
	for i := range samples {
		if s := &samples[i]; refused[s.Class] == nil && ctx.Err() == nil {
			if err := r.create(ctx, p, s, true); err != nil {
				refused[s.Class] = err
			}
		}
	}
	return refused
}

// Others counts the pods in a namespace that are of other benchmarks: of one that runs,
// and disturbs this one, or of one that was killed and could not clean up.
func (r *Runner) Others(ctx context.Context, p *Plan) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	selector := labels.SelectorFromSet(labels.Set{ManagedByLabel: ManagedBy}).String()
	list, err := r.Client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	return len(list.Items), nil
}

// remove deletes a pod and waits until it is gone, so that the next one neither adds to
// it nor runs beside its end. What goes wrong here is the sweep's to report.
func (r *Runner) remove(ctx context.Context, p *Plan, s *Sample, subject *subject) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := r.Client.CoreV1().Pods(p.Namespace).Delete(call, s.Pod, metav1.DeleteOptions{}); err != nil {
		return
	}
	select {
	case <-subject.gone:
	case <-time.After(goneTimeout):
	case <-ctx.Done():
	}
}

func nodeOf(s *subject) string {
	if o := s.observed(); o.pod != nil {
		return o.pod.Spec.NodeName
	}
	return ""
}

// tally gathers measurements.
type tally struct {
	mu                sync.Mutex
	results           Results
	succeeded, failed map[string]int
	progress          func(int)
}

func (t *tally) gaveUp(class string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.results.GivenUp[class] != nil
}

// add gives a class up whose pods have never worked, or fail too often: each may take
// the whole timeout, and a cluster has better things to do.
func (t *tally) add(m Measurement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results.Measurements = append(t.results.Measurements, m)
	if m.Err == nil {
		t.succeeded[m.Class]++
	} else if t.failed[m.Class]++; t.results.GivenUp[m.Class] == nil && (t.succeeded[m.Class] == 0 || t.failed[m.Class] >= faults) {
		t.results.GivenUp[m.Class] = fmt.Errorf("given up after %d of %d pods failed: %w", t.failed[m.Class], t.failed[m.Class]+t.succeeded[m.Class], m.Err)
	}
	if t.progress != nil {
		t.progress(len(t.results.Measurements))
	}
}

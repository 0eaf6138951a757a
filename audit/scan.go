package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/survey"
)

// maxFindings bounds what a scan keeps in a process that admission needs.
const maxFindings = 10_000

// jitter is by what part of it an interval may be longer.
const jitter = 0.1

// Scanner looks at running pods again and again, as long as it holds a lease. It takes one
// goroutine, and of that what [Options.PodsPerSecond] leaves it: admission comes first.
type Scanner struct {
	options Options
	auditor *Auditor
	kube    *rest.Config
	client  kubernetes.Interface
	pace    flowcontrol.RateLimiter
	evictor *Evictor // nil where none are evicted
	metrics *Metrics
	log     logr.Logger
}

// NewScanner returns one. Events on evicted pods go to recorder.
func NewScanner(options Options, auditor *Auditor, kube *rest.Config, recorder events.EventRecorder, metrics *Metrics, log logr.Logger) (*Scanner, error) {
	kube = rest.CopyConfig(kube)
	kube.QPS, kube.Burst = 5, 10 // a page is 500 pods
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	s := &Scanner{
		options: options, auditor: auditor, kube: kube, client: client, metrics: metrics, log: log.WithName("audit"),
		pace: flowcontrol.NewTokenBucketRateLimiter(float32(options.PodsPerSecond), 1),
	}
	if options.EvictionsPerMinute > 0 {
		if s.evictor, err = newEvictor(s, recorder); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// scanUntil scans, and evicts in between, until ctx ends.
func (s *Scanner) scanUntil(ctx context.Context) {
	for ctx.Err() == nil {
		next := time.Now().Add(wait.Jitter(s.options.Interval.Duration, jitter))
		evictable, err := s.scan(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.metrics.errors.WithLabelValues("scan").Inc()
			s.log.Error(err, "running pods are not looked at; the next scan tries again", "at", next)
		}
		pause, done := context.WithDeadline(ctx, next)
		if s.evictor != nil && err == nil {
			s.evictor.run(pause, evictable)
		}
		<-pause.Done()
		done()
	}
}

// scan looks at every pod once, and returns those that may be evicted.
func (s *Scanner) scan(ctx context.Context) ([]candidate, error) {
	start := time.Now()
	pods, err := survey.NewPods(s.kube, metav1.NamespaceAll, "", io.Discard)
	if err != nil {
		return nil, err
	}
	p := &pass{Scanner: s, tally: NewTally(maxFindings, false)}
	for item, err := range pods.Items(ctx, nobody{}) {
		if err != nil {
			p.unreadable(err)
			continue
		}
		for document, err := range item.Documents() {
			if err := s.pace.Wait(ctx); err != nil {
				return nil, err
			}
			p.look(ctx, document, err)
		}
	}
	if err := errors.Join(ctx.Err(), pods.Err()); err != nil {
		return nil, err
	}
	if err := errors.Join(p.unread...); err != nil {
		s.log.Error(err, "some running pods cannot be read")
	}
	report := p.tally.Report()
	s.metrics.scanned(report, time.Since(start), time.Now())
	s.log.Info("running pods were looked at", "pods", report.Pods, "found", report.Found, "took", time.Since(start).String())
	s.report(ctx, report)
	return p.evictable, nil
}

// pass is one scan.
type pass struct {
	*Scanner
	tally     *Tally
	position  int
	evictable []candidate
	unread    []error // the first few
}

// look counts one pod, or the error that it came with.
func (p *pass) look(ctx context.Context, document *catalog.Document, err error) {
	var looked *Looked
	if err == nil {
		looked, err = p.lookSafely(ctx, document)
	}
	if err != nil {
		p.unreadable(err)
		return
	}
	p.position++
	p.tally.Add(p.position, looked)
	if c, ok := evictableOf(looked); ok && len(p.evictable) < maxEvictable {
		p.evictable = append(p.evictable, c)
	}
}

// lookSafely makes of a panic an error of that pod: it must not end what admits others.
func (s *Scanner) lookSafely(ctx context.Context, document *catalog.Document) (looked *Looked, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			looked, err = nil, fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		}
	}()
	return s.auditor.Look(ctx, document)
}

func (p *pass) unreadable(err error) {
	p.metrics.errors.WithLabelValues("pods").Inc()
	if len(p.unread) < maxNames {
		p.unread = append(p.unread, err)
	}
}

func (s *Scanner) report(ctx context.Context, report *Report) {
	if !s.options.Reports {
		return
	}
	reports, err := NewReports(ctx, s.kube) // the CRD may have come since the last scan
	if err == nil {
		_, err = reports.Write(ctx, report, metav1.NamespaceAll)
	}
	if err != nil && ctx.Err() == nil {
		s.metrics.errors.WithLabelValues("reports").Inc()
		s.log.Error(err, "reports are not written")
	}
}

// nobody is told how far a scan is.
type nobody struct{}

func (nobody) Size(int64) {}
func (nobody) At(int64)   {}

package decisionlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/runtimeclass-router/runtimeclass-router/remote"
)

// pace is how an upload goes about its work.
type pace struct {
	// gather is how long decisions are collected for one upload.
	gather time.Duration
	// request ends an upload to a server that hangs.
	request time.Duration
	// retry is the first wait after a failure, and the longest.
	retry, longest time.Duration
	// flush is what is left for the last uploads, when the process ends. With the drain it
	// lies below the chart's grace period.
	flush time.Duration
}

var usualPace = pace{gather: 5 * time.Second, request: 10 * time.Second, retry: time.Second, longest: time.Minute, flush: 5 * time.Second}

// upload sends entries to a service, in batches, each until the service has taken it.
type upload struct {
	pace
	queue    chan *Entry
	options  UploadOptions
	labels   map[string]string
	log      logr.Logger
	count    counts
	failures prometheus.Counter
	told     string // the failure that was logged last
}

func newUpload(c *Config, log logr.Logger, count counts, failures prometheus.Counter) *upload {
	return &upload{
		pace: usualPace, queue: make(chan *Entry, maxQueued), options: c.Upload, labels: labelsOf(c),
		log: log.WithValues("url", c.Upload.URL), count: count, failures: failures,
	}
}

func (u *upload) offer(e *Entry) bool { return offer(u.queue, e) }

func (u *upload) run(ctx context.Context) {
	var b batch
	for retry := u.backoff(); ctx.Err() == nil; {
		if b.entries == 0 {
			u.collect(ctx, &b)
			continue
		}
		if u.send(ctx, &b) {
			retry = u.backoff()
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry.Step()):
		}
	}
	u.last(ctx, &b)
}

func (u *upload) backoff() wait.Backoff {
	return wait.Backoff{Duration: u.retry, Factor: 2, Jitter: 0.1, Steps: 64, Cap: u.longest}
}

// collect waits for an entry, and a little longer for more.
func (u *upload) collect(ctx context.Context, b *batch) {
	var full <-chan time.Time
	for !b.full() {
		select {
		case e := <-u.queue:
			u.add(b, e)
			if full == nil {
				full = time.After(u.gather)
			}
		case <-full:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (u *upload) add(b *batch, e *Entry) {
	if err := b.add(newEvent(e, u.labels)); err != nil {
		u.count.dropped.Inc()
		u.log.Error(err, "a decision cannot be encoded", "decisionID", e.DecisionID)
	}
}

// last sends what is left, when ctx is over. A server that fails now gets no second chance.
func (u *upload) last(ctx context.Context, b *batch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.flush)
	defer cancel()
	for {
		for len(u.queue) > 0 && !b.full() {
			u.add(b, <-u.queue)
		}
		if b.entries == 0 {
			return
		}
		if !u.send(ctx, b) {
			lost := b.entries + len(u.queue)
			u.count.dropped.Add(float64(lost))
			u.log.Info("decisions are lost that were not uploaded before the end", "decisions", lost)
			return
		}
	}
}

// send reports whether the service has done with a batch, which is empty then.
func (u *upload) send(ctx context.Context, b *batch) bool {
	err := u.post(ctx, b)
	var answer statusError
	switch {
	case err == nil:
		u.count.written.Add(float64(b.entries))
		u.told = ""
	case ctx.Err() != nil:
		return false
	case errors.As(err, &answer) && answer.final():
		u.failures.Inc()
		u.count.dropped.Add(float64(b.entries))
		u.log.Error(err, "the service does not take these decisions, and they are dropped", "decisions", b.entries)
	default:
		u.failures.Inc()
		if err.Error() != u.told {
			u.log.Error(err, "decisions cannot be uploaded, and are tried again")
		}
		u.told = err.Error()
		return false
	}
	*b = batch{}
	return true
}

// post sends a batch once. Credentials and CA are read anew each time.
func (u *upload) post(ctx context.Context, b *batch) error {
	ctx, cancel := context.WithTimeout(ctx, u.request)
	defer cancel()
	transport, err := u.options.access().Transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	body, err := b.compressed()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.options.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Content-Encoding", "gzip")
	if err := u.options.access().Authorize(request); err != nil {
		return err
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)); err != nil {
		return err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return statusError(response.StatusCode)
	}
	return nil
}

// maxAnswer is what is read of an answer, which nobody wants to know.
const maxAnswer = 64 << 10

// checkRedirect also refuses a redirect that would make a GET of the upload: whatever
// answers that has taken nothing.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if request.Method != http.MethodPost {
		return fmt.Errorf("%s redirects an upload as a %s", via[0].URL.Host, request.Method)
	}
	return remote.CheckRedirect(request, via)
}

// statusError is an answer other than success.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s)))
}

// final reports whether the same upload would be answered so again: it is the server's word
// on what was sent, not on who sent it or when.
func (s statusError) final() bool {
	switch int(s) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

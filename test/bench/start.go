package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// starts measures how long each target takes from the start of its process to its first
// right answer, and the product to readiness.
func (h *harness) starts(ctx context.Context, all []*target, into []*results.Target) error {
	attempts := min(h.Rounds, 5)
	h.say("starting each webhook %d times", attempts)
	var ready []time.Duration
	answer := map[*target][]time.Duration{}
	for range attempts {
		for _, t := range all {
			switch {
			case t.baseline != "":
				answered, err := h.startOfBaseline(ctx, t)
				if err != nil {
					return fmt.Errorf("start %s: %w", t.title, err)
				}
				answer[t] = append(answer[t], answered)
			case t.name == "router-new":
				r, err := h.newRouter(ctx, "start", nil)
				if err != nil {
					return err
				}
				times, err := h.startOfRouter(ctx, r, t)
				if err != nil {
					return err
				}
				ready, answer[t] = append(ready, times.ready), append(answer[t], times.answer)
				if err := r.Stop(); err != nil {
					return err
				}
			}
		}
	}
	for i, t := range all {
		into[i].Answer = results.Median(answer[t])
		if t.name == "router-new" {
			into[i].Ready = results.Median(ready)
		}
	}
	return nil
}

func (h *harness) startOfBaseline(ctx context.Context, t *target) (time.Duration, error) {
	began := time.Now()
	b, err := h.startBaseline(t.baseline)
	if err != nil {
		return 0, err
	}
	err = h.firstAnswer(ctx, b.url, t)
	elapsed := time.Since(began)
	if stopped := b.stop(); err == nil {
		err = stopped
	}
	return elapsed, err
}

// startTimes are counted from the start of the process.
type startTimes struct{ ready, answer time.Duration }

// startOfRouter starts it, and leaves it running if there is no error.
func (h *harness) startOfRouter(ctx context.Context, r *router, t *target) (startTimes, error) {
	began := time.Now()
	var times startTimes
	// A connection that is kept would be waited for when the router ends.
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	starting := make(chan error, 1)
	go func() { starting <- r.Start(ctx) }() // returns when it is ready, too, but has its own pace
	ready := make(chan error, 1)
	go func() {
		err := poll(ctx, func(ctx context.Context) error {
			_, err := get(ctx, once, r.HealthURL+"/readyz")
			return err
		})
		times.ready = time.Since(began)
		ready <- err
	}()
	err := h.firstAnswer(ctx, r.URL, t)
	times.answer = time.Since(began)
	if failed := <-starting; failed != nil {
		return times, fmt.Errorf("it did not become ready: %s", lastError(r.Log))
	}
	if failed := <-ready; failed != nil {
		err = failed
	}
	if err != nil {
		_ = r.Stop() // what went wrong before is what is told
	}
	return times, err
}

// firstAnswer waits for a right one.
func (h *harness) firstAnswer(ctx context.Context, url string, t *target) error {
	c := h.certificate.client(1)
	defer c.CloseIdleConnections()
	return poll(ctx, func(ctx context.Context) error {
		_, err := send(ctx, c, url, t.next(serial.Add(1)), t.routed)
		return err
	})
}

// poll tries until there is no error, every 5 ms.
func poll(ctx context.Context, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (last: %w)", err, last)
	}
	return nil
}

// lastError is the last one that a router has logged.
func lastError(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	last := "its log tells no error"
	for line := range strings.Lines(string(raw)) {
		var said struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Level == "error" {
			last = said.Msg + ": " + said.Error
		}
	}
	return last
}

// oneLine is an error as it fits into a table.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), "|", "\\|")
}

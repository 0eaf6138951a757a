package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
)

// turns are how often each webhook has one in a round. They are short, a second or two, because
// so is what makes a shared machine slow.
const turns = 4

// connections are those that the rate is measured over.
const connections = 16

// target is a webhook that reviews are sent to, over HTTP/1.1 that is kept alive.
type target struct {
	name, title string
	baseline    string // its kind; empty for the product
	// next makes the review of the n-th pod.
	next func(n int64) []byte
	// routed says that the answer is a patch with the class.
	routed bool
}

// targets in the order of the page's table.
func targets(untrusted, trusted *review) []*target {
	return []*target{
		{name: "noop", title: "no-op, net/http", baseline: "noop", next: untrusted.copied},
		{name: "job", title: "hard-coded job, net/http", baseline: "job", next: untrusted.copied, routed: true},
		{name: "noop-controllerruntime", title: "no-op, controller-runtime", baseline: "noop-controllerruntime", next: untrusted.copied},
		{name: "job-controllerruntime", title: "hard-coded job, controller-runtime", baseline: "job-controllerruntime", next: untrusted.copied, routed: true},
		{name: "router-remembered", title: "router, decision remembered", next: untrusted.copied, routed: true},
		{name: "router-new", title: "router, every decision new", next: untrusted.changed, routed: true},
		{name: "router-trusted", title: "router, a trusted pod that keeps its route", next: trusted.copied},
	}
}

func (h *harness) straight(ctx context.Context, r *results.Results, untrusted, trusted *review) error {
	all := targets(untrusted, trusted)
	for _, t := range all {
		r.Straight = append(r.Straight, &results.Target{Name: t.name, Title: t.title})
	}
	one, many := h.certificate.client(1), h.certificate.client(connections)
	for round := range h.Rounds {
		h.say("straight to the webhook: round %d of %d", round+1, h.Rounds)
		for range turns {
			for _, i := range rand.Perm(len(all)) {
				if err := h.sampleTarget(ctx, all[i], r.Straight[i], one, many); err != nil {
					return fmt.Errorf("%s: %w", all[i].title, err)
				}
			}
		}
	}
	for i, t := range all {
		pid := h.targetPID(t)
		size, err := binary(pid)
		if err != nil {
			return err
		}
		used, err := memory(pid)
		if err != nil {
			return err
		}
		r.Straight[i].Binary, r.Straight[i].Memory = size, used
	}
	return h.starts(ctx, all, r.Straight)
}

func (h *harness) targetPID(t *target) int {
	if t.baseline != "" {
		return h.baselines[t.baseline].pid
	}
	return h.router.PID()
}

func (h *harness) targetURL(t *target) string {
	if t.baseline != "" {
		return h.baselines[t.baseline].url
	}
	return h.router.URL
}

func (h *harness) sampleTarget(ctx context.Context, t *target, into *results.Target, one, many *http.Client) error {
	var before, after counts
	var err error
	if t.baseline == "" {
		if before, err = h.router.counts(ctx); err != nil {
			return err
		}
	}
	each := max(1, h.Requests/turns)
	warmed := max(1, each/5)
	requests := 2*warmed + each*5
	if _, err := h.sendMany(ctx, t, one, warmed, 1); err != nil {
		return err
	}
	sample, err := h.sendMany(ctx, t, one, each, 1)
	if err != nil {
		return err
	}
	into.One = append(into.One, sample)
	if _, err := h.sendMany(ctx, t, many, warmed, connections); err != nil {
		return err
	}
	if sample, err = h.sendMany(ctx, t, many, 4*each, connections); err != nil {
		return err
	}
	into.Many = append(into.Many, sample)
	if t.baseline == "" {
		if after, err = h.router.counts(ctx); err != nil {
			return err
		}
		counted := after.minus(before)
		into.Counted = counted.counted
		into.Evaluated += counted.evaluated
		into.Remembered += counted.remembered
	}
	into.Requests += requests
	h.reviews += requests
	return nil
}

func (h *harness) sendMany(ctx context.Context, t *target, c *http.Client, n, clients int) (results.Sample, error) {
	m, err := startMeter(h.targetPID(t))
	if err != nil {
		return results.Sample{}, err
	}
	url := h.targetURL(t)
	l, err := drive(ctx, n, clients, func(ctx context.Context) (time.Duration, error) {
		return send(ctx, c, url, t.next(serial.Add(1)), t.routed)
	})
	if err != nil {
		return results.Sample{}, err
	}
	used, err := m.each(n)
	if err != nil {
		return results.Sample{}, err
	}
	return results.Sample{P50: results.Median(l.latencies), P99: results.Quantile(l.latencies, 0.99), Rate: l.rate(), Webhook: used[0]}, nil
}

// send sends one review, checks the answer, and returns how long that took.
func send(ctx context.Context, c *http.Client, url string, body []byte, routed bool) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mutate-pod?timeout=3s", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	began := time.Now()
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	elapsed := time.Since(began)
	if err != nil {
		return 0, err
	}
	return elapsed, checkAnswer(said, routed)
}

func checkAnswer(said []byte, routed bool) error {
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(said, &answer); err != nil {
		return fmt.Errorf("read the answer %q: %w", said, err)
	}
	switch {
	case answer.Response == nil:
		return errors.New("the answer has no response")
	case !answer.Response.Allowed:
		return fmt.Errorf("refused: %v", answer.Response.Result)
	case !routed && len(answer.Response.Patch) > 0:
		return fmt.Errorf("a patch, where none is due: %s", answer.Response.Patch)
	case !routed:
		return nil
	}
	var operations []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(answer.Response.Patch, &operations); err != nil {
		return fmt.Errorf("read the patch %q: %w", answer.Response.Patch, err)
	}
	found := map[string]string{}
	for _, o := range operations {
		found[o.Path] = string(o.Value)
	}
	switch {
	case found["/spec/runtimeClassName"] != `"gvisor"`:
		return fmt.Errorf("no patch to gvisor: %s", answer.Response.Patch)
	case found["/spec/nodeSelector/example.com~1pool"] == "" && !bytes.Contains([]byte(found["/spec/nodeSelector"]), []byte(`"example.com/pool":"gvisor"`)):
		return fmt.Errorf("no patch of the node selector: %s", answer.Response.Patch)
	case !bytes.Contains(answer.Response.Patch, []byte(`"key":"example.com/sandbox"`)):
		return fmt.Errorf("no patch of the tolerations: %s", answer.Response.Patch)
	}
	return nil
}

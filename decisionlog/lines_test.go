package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// gate lets writes through once it is open.
type gate struct {
	io.Writer
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.Writer.Write(p)
}

// start runs a log; the end of it is waited for by the returned function.
func start(t *testing.T, c Config) (*Log, func()) {
	t.Helper()
	if c.Log.GetSink() == nil {
		c.Log = logr.Discard()
	}
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, run(t, l)
}

func run(t *testing.T, l *Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestALineEach, and whatever waits at the end is still written.
func TestALineEach(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	open := make(chan struct{})
	l, stop := start(t, Config{Options: Options{Sample: Sample{Denied: 1}}, Out: &gate{&out, open}})
	denied, allowed := decide(t, "untrusted", hostNetwork), decide(t, "untrusted", plain)
	const n = 2*maxTogether + 7
	for range n {
		l.Decided(t.Context(), denied)
		l.Decided(t.Context(), allowed)
	}
	l.Decided(t.Context(), failed())
	close(open)
	stop()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != n+1 || value(t, l, "stdout", "written") != n+1 || value(t, l, "stdout", "dropped") != 0 {
		t.Fatalf("%d lines, %v counted, want %d", len(lines), value(t, l, "stdout", "written"), n+1)
	}
	for i, line := range lines {
		var e Entry
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil || e.Log != "decision" || (e.Action == "deny") != (i < n) || (e.Error != nil) != (i == n) {
			t.Fatalf("%v: %s", err, line)
		}
	}
}

// TestALineIsOneLine, whatever is in it.
func TestALineIsOneLine(t *testing.T) {
	t.Parallel()
	d := *decide(t, "untrusted", hostNetwork)
	d.Route.Reasons = []string{"a\nb", `{"log":"decision"}`, "\xff", "<&>"}
	var out bytes.Buffer
	l, stop := start(t, Config{Options: Options{Sample: Sample{Denied: 1}}, Out: &out})
	l.Decided(t.Context(), &d)
	stop()
	if line := out.String(); strings.Count(line, "\n") != 1 || !json.Valid([]byte(line)) || !strings.Contains(line, `"<&>"`) {
		t.Errorf("got %q", line)
	}
}

// TestABlockedOutputHoldsNobodyUp: what does not fit into the queue is dropped and counted.
func TestABlockedOutputHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	open := make(chan struct{})
	l, stop := start(t, Config{Options: Options{Sample: Sample{Denied: 1}}, Out: &gate{&out, open}})
	d := decide(t, "untrusted", hostNetwork)
	const n = maxQueued + 2*maxTogether
	for range n {
		l.Decided(t.Context(), d)
	}
	dropped := value(t, l, "stdout", "dropped")
	close(open)
	stop()
	if written := value(t, l, "stdout", "written"); dropped < maxTogether || written+dropped != n || strings.Count(out.String(), "\n") != int(written) {
		t.Errorf("%v written and %v dropped of %d", written, dropped, n)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAnOutputThatFailsIsToldOnce(t *testing.T) {
	t.Parallel()
	var said []string
	l, stop := start(t, Config{
		Options: Options{Sample: Sample{Denied: 1}}, Out: broken{},
		Log: funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}),
	})
	d := decide(t, "untrusted", hostNetwork)
	for range 3 * maxTogether {
		l.Decided(t.Context(), d)
	}
	stop()
	if len(said) != 1 || !strings.Contains(said[0], "no space left") || value(t, l, "stdout", "dropped") != 3*maxTogether {
		t.Errorf("said %q, %v dropped", said, value(t, l, "stdout", "dropped"))
	}
}

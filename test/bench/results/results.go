package results

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Results are one run. What was not measured is empty.
type Results struct {
	Machine  Machine
	Settings Settings
	// Pods counts the pods that were created and timed through the API server, Reviews
	// those that were sent straight to a webhook. The answer of each was checked.
	Pods, Reviews int
	// PodBytes is the size of the pod that is created, ReviewBytes that of the review
	// that the API server sends of it.
	PodBytes, ReviewBytes int

	Through  []*Variant
	Straight []*Target
	Burst    []*Burst
	Replicas []*Workload
	Growth   []*Curve
	Large    *Large
	Profiles []*Profile
}

// Settings say how much was measured.
type Settings struct {
	Rounds   int
	Pods     int // a round, a variant, with one client; twice as many with more clients
	Requests int // a round, a target, over one connection
	Burst    int // pods
	Replicas int
	Quick    bool
}

// Sample is one variant or target in one round.
type Sample struct {
	P50, P99 time.Duration
	Rate     float64 // a second
	// Webhook and APIServer are processor time, user and system, for one pod.
	Webhook, APIServer time.Duration
	// Calls is how many requests the webhook was sent for one pod.
	Calls float64
}

// Variant is a way to do the job, measured through the API server.
type Variant struct {
	Name, Title string
	// Samples are those of a number of clients, one a round, in the order of rounds.
	Samples map[int][]Sample
}

// Target is a webhook that is sent reviews without an API server.
type Target struct {
	Name, Title string
	// One and Many are of one connection and of sixteen, one a round.
	One, Many []Sample
	// Evaluated and Remembered are what the product counted of all its requests; Counted
	// says whether it did.
	Evaluated, Remembered, Requests int
	Counted                         bool
	// Memory is the resident set in bytes after all rounds, Binary the size of the file.
	Memory, Binary int64
	// Ready and Answer are the time from the start of the process to readiness (zero if it
	// tells none) and to the first right answer, each the median of several starts.
	Ready, Answer time.Duration
}

// Burst is many pods created at once, stored and not dry runs.
type Burst struct {
	Name, Title string
	Pods        int
	Elapsed     []time.Duration // one a round
}

// Workload is a controller's pods.
type Workload struct {
	Kind                         string
	Pods                         int
	Calls, Evaluated, Remembered int
	Routed                       int // pods that came out right
	Counted                      bool
	CreatedWithin                time.Duration
}

// Curve is how a new decision's time grows with something.
type Curve struct {
	Name, Title string
	Points      []Point
}

// Point is one size of it.
type Point struct {
	Size int
	// P50 is of a new decision, Reference of the no-op webhook, asked in turn with it.
	P50, Reference time.Duration
	CPU            time.Duration // the router's, for one request
	Start          time.Duration // of the router, to readiness
	Memory         int64         // the router's resident set after the requests
	// Fault is why there are no figures, on one line: the router did not start there, or
	// gave a wrong answer.
	Fault string
}

// Large is the router in a cluster where everything is large at once.
type Large struct {
	Nodes, Namespaces, RuntimeClasses, Pods int
	Start, Answer                           time.Duration
	Idle, Memory                            int64 // resident set when ready, and after the requests
	P50, Reference                          time.Duration
	// Fault is why there are no figures, as in a point.
	Fault string
	// MayListPods is what the API server says of the router's account.
	MayListPods bool
}

// Profile is where the processor's time goes.
type Profile struct {
	Name, Title string
	Benchmark   string     // the line that it printed
	Packages    []Function // their own shares alone
	Functions   []Function
}

// Function has its share of a profile's samples, in percent: its own, and with what it
// calls.
type Function struct {
	Name             string
	Flat, Cumulative float64
}

// Variant returns the variant of that name, or nil.
func (r *Results) Variant(name string) *Variant { return named(r.Through, name) }

// Target returns the target of that name, or nil.
func (r *Results) Target(name string) *Target { return named(r.Straight, name) }

// BurstOf returns the burst of that name, or nil.
func (r *Results) BurstOf(name string) *Burst { return named(r.Burst, name) }

// Curve returns the curve of that name, or nil.
func (r *Results) Curve(name string) *Curve { return named(r.Growth, name) }

type namer interface{ name() string }

func (v *Variant) name() string { return v.Name }
func (t *Target) name() string  { return t.Name }
func (b *Burst) name() string   { return b.Name }
func (c *Curve) name() string   { return c.Name }

func named[T namer](all []T, name string) (none T) {
	for _, one := range all {
		if one.name() == name {
			return one
		}
	}
	return none
}

// Write writes the results to a file, as JSON.
func (r *Results) Write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	return os.WriteFile(path, raw, 0o644)
}

// Read reads what Write wrote.
func Read(path string) (*Results, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("read results of %s: %w", path, err)
	}
	return r, nil
}

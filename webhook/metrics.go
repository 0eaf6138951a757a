package webhook

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Metrics counts what the webhook does. No label carries a namespace, a pod or a
// user: their number is the tenants' to choose.
type Metrics struct {
	decisions    *prometheus.CounterVec
	errors       *prometheus.CounterVec
	policyErrors *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	policy       *prometheus.GaugeVec
	exceptions   *prometheus.CounterVec
	expiry       *prometheus.GaugeVec
	validations  *prometheus.CounterVec
	reloads      *prometheus.CounterVec
}

// NewMetrics registers the webhook's metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_decisions_total",
			Help: "Decisions on pods, by action, mode, trust level and runtime class: in modes warn and audit, what enforcing would do.",
		}, []string{"action", "mode", "trust", "runtime_class"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_errors_total",
			Help: "Reviews that ended in an error, by kind: undecodable, busy, policy, deadline, class_gone, api or internal.",
		}, []string{"kind"}),
		policyErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_policy_errors_total",
			Help: "Faults of the policy, by kind: undefined, failed, timeout, shape or unsafe.",
		}, []string{"kind"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runtimeclass_router_decision_duration_seconds",
			Help: "Time from a decoded review to its answer, by outcome.",
			// From a remembered decision to the deadline.
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"outcome"}),
		policy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "runtimeclass_router_policy_info",
			Help: "The policy in force: always 1, labelled with its revision.",
		}, []string{"revision"}),
		exceptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_exceptions_total",
			Help: "Pods let in below the floor of their trust level, by the exception of the configuration that covers them.",
		}, []string{"exception"}),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "runtimeclass_router_exception_expiry_timestamp_seconds",
			Help: "When an exception of the configuration ends, by its name: the end of its last UTC day.",
		}, []string{"exception"}),
		validations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_validations_total",
			Help: "Final pods, workloads and policy ConfigMaps judged, by resource (pods, workloads or policies), mode and outcome: an action, or error. A denied pod was changed after it was routed, or the mutating endpoint was not asked.",
		}, []string{"resource", "mode", "outcome"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtimeclass_router_config_reloads_total",
			Help: "Changes of the configuration or the policy's files, by outcome: success, or error, after which the last good one stays in force.",
		}, []string{"outcome"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.decisions, m.errors, m.policyErrors, m.duration, m.policy, m.exceptions, m.expiry, m.validations, m.reloads} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}

// PolicyLoaded records the revision of the policy in force.
func (m *Metrics) PolicyLoaded(revision string) {
	m.policy.Reset()
	m.policy.WithLabelValues(revision).Set(1)
}

// ExceptionsInForce records when each exception of the configuration in force ends.
func (m *Metrics) ExceptionsInForce(exceptions []policies.Exception) {
	m.expiry.Reset()
	for i := range exceptions {
		if last, err := time.Parse(time.DateOnly, exceptions[i].Until); err == nil { // validated when it was read
			m.expiry.WithLabelValues(exceptions[i].Name).Set(float64(last.AddDate(0, 0, 1).Unix()))
		}
	}
}

// Reloaded counts a change of the configuration that was applied, or was not.
func (m *Metrics) Reloaded(err error) {
	outcome := "success"
	if err != nil {
		outcome = "error"
	}
	m.reloads.WithLabelValues(outcome).Inc()
}

func (m *Metrics) observe(route *Route, err error, elapsed time.Duration) {
	outcome := string(route.Action)
	if err != nil {
		outcome = "error"
		m.failed(err)
	} else {
		m.decisions.WithLabelValues(outcome, string(route.Mode), route.Trust, route.RuntimeClassName).Inc()
		if route.Exception != "" {
			m.exceptions.WithLabelValues(route.Exception).Inc()
		}
	}
	m.duration.WithLabelValues(outcome).Observe(elapsed.Seconds())
}

func (m *Metrics) validated(resource string, route *Route, err error) {
	outcome := string(route.Action)
	if err != nil {
		outcome = "error"
		m.failed(err)
	}
	m.validations.WithLabelValues(resource, string(route.Mode), outcome).Inc()
}

// failed counts an error; a nil Metrics counts nothing.
func (m *Metrics) failed(err error) {
	if m == nil {
		return
	}
	m.errors.WithLabelValues(classify(err).metric).Inc()
	var fault *policies.Fault
	if errors.As(err, &fault) {
		m.policyErrors.WithLabelValues(string(fault.Kind)).Inc()
	}
}

package audit

import (
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options say whether running pods are looked at in the background: the audit section of
// the configuration file.
type Options struct {
	// Interval is the time from one scan to the next. If it is 0 there are none, and the
	// rest is not read.
	Interval metav1.Duration `json:"interval"`
	// PodsPerSecond bounds how much of the machine a scan takes from admission.
	PodsPerSecond int `json:"podsPerSecond"`
	// Reports writes what is found as [Reports] does.
	Reports bool `json:"reports"`
	// EvictionsPerMinute bounds how many pods below their floor are evicted; 0 evicts none.
	EvictionsPerMinute int `json:"evictionsPerMinute"`
	// ExemptNamespaces are those about whose pods the webhook is not asked.
	ExemptNamespaces []string `json:"exemptNamespaces"`
	// Lease is held by the replica that scans. It is made where it is missing.
	Lease Lease `json:"lease"`
}

// Lease names a Lease of coordination.k8s.io.
type Lease struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// leastInterval keeps scans from following each other: a decision costs time that
// admission needs.
const leastInterval = 10 * time.Second

// Validate returns every fault of o, each with its field below path.
func (o *Options) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	invalid := func(of *field.Path, value any, message string) {
		errs = append(errs, field.Invalid(of, value, message))
	}
	if o.Interval.Duration == 0 {
		return nil
	}
	if o.Interval.Duration < leastInterval {
		invalid(path.Child("interval"), o.Interval.Duration.String(), "must be 0, for no scans, or at least "+leastInterval.String())
	}
	if o.PodsPerSecond < 1 {
		invalid(path.Child("podsPerSecond"), o.PodsPerSecond, "must be at least 1")
	}
	if o.EvictionsPerMinute < 0 || o.EvictionsPerMinute > maxEvictionsPerMinute {
		invalid(path.Child("evictionsPerMinute"), o.EvictionsPerMinute, "must be from 0, for none, to 60")
	}
	for i, namespace := range o.ExemptNamespaces {
		for _, message := range apivalidation.ValidateNamespaceName(namespace, false) {
			invalid(path.Child("exemptNamespaces").Index(i), namespace, message)
		}
	}
	lease := path.Child("lease")
	for _, message := range apivalidation.ValidateNamespaceName(o.Lease.Namespace, false) {
		invalid(lease.Child("namespace"), o.Lease.Namespace, message)
	}
	for _, message := range apivalidation.NameIsDNSSubdomain(o.Lease.Name, false) {
		invalid(lease.Child("name"), o.Lease.Name, message)
	}
	return errs
}

package policies

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Exception lets pods run under one class below the floor of their trust level, until
// a day. It is data in the product's own configuration: nothing that a tenant writes
// makes one.
type Exception struct {
	Name string `json:"name"`
	// Namespaces are exact names. ServiceAccounts and PodLabels narrow, and mean any
	// where they are empty.
	Namespaces      []string          `json:"namespaces"`
	ServiceAccounts []string          `json:"serviceAccounts,omitempty"`
	PodLabels       map[string]string `json:"podLabels,omitempty"`
	// RuntimeClassName is the class that the pods may run under.
	RuntimeClassName string `json:"runtimeClassName"`
	Owner            string `json:"owner"`
	Ticket           string `json:"ticket"`
	Reason           string `json:"reason"`
	// Until is the last UTC day on which the exception applies, as 2006-01-02.
	Until string `json:"until"`
}

// lastDay keeps days within what Rego counts in nanoseconds, which end in 2262.
var lastDay = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Applies reports whether the exception covers a pod with that service account and
// those labels on a UTC day, written as Until is.
func (e *Exception) Applies(namespace, serviceAccount string, labels map[string]string, date string) bool {
	if !slices.Contains(e.Namespaces, namespace) || date > e.Until {
		return false
	}
	if len(e.ServiceAccounts) > 0 && !slices.Contains(e.ServiceAccounts, serviceAccount) {
		return false
	}
	for key, value := range e.PodLabels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}

func (e *Exception) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]string{
		"name": e.Name, "runtimeClassName": e.RuntimeClassName, "owner": e.Owner, "ticket": e.Ticket, "reason": e.Reason,
	} {
		if value == "" {
			errs = append(errs, field.Required(path.Child(name), "whoever reads it next year needs it"))
		}
	}
	if len(e.Namespaces) == 0 {
		errs = append(errs, field.Required(path.Child("namespaces"), "name the namespaces exactly: labels and service accounts are what a pod's author writes"))
	}
	for i, namespace := range e.Namespaces {
		for _, fault := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), namespace, fault))
		}
	}
	switch until, err := time.Parse(time.DateOnly, e.Until); {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("until"), e.Until, `want a day, such as "2030-12-31"`))
	case until.After(lastDay):
		errs = append(errs, field.Invalid(path.Child("until"), e.Until, "an exception is for a time: want a day before "+lastDay.Format(time.DateOnly)))
	}
	return errs
}

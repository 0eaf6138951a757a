package benchmark

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MostParallel bounds the pods that exist at once: a benchmark is no load test of the
// cluster's control plane.
const MostParallel = 32

// MostTimeout bounds how long one pod may take.
const MostTimeout = time.Hour

// Options say what to measure, and how much of the cluster it may take.
type Options struct {
	// Namespace is where the pods run. It exists.
	Namespace string
	// Classes are RuntimeClasses by name. The first is what the others are compared with.
	Classes []string

	// Pods is how many short pods of each class are started.
	Pods int
	// Runs is how often each class runs each workload.
	Runs int
	// Warmup is how many pods of each class run first and do not count: a node's first
	// pod may have to pull the image.
	Warmup int
	// Workloads are run beside the two of the package.
	Workloads []Workload

	// Parallel is how many short pods exist at once, at most [MostParallel]. Workloads run
	// one by one.
	Parallel int
	// MaxPods bounds the pods of the whole benchmark.
	MaxPods int
	// Timeout is how long one pod may take, from its creation to its end.
	Timeout time.Duration

	// Image has a POSIX shell at /bin/sh, and /bin/true.
	Image      string
	PullPolicy corev1.PullPolicy
	// RunAsUser is the pods' numeric user.
	RunAsUser int64
	// Requests and Limits are of each pod's container.
	Requests, Limits corev1.ResourceList
}

// Validate names every field that is out of bounds, and what it should be.
func (o *Options) Validate() error {
	var errs []error
	wrong := func(bad bool, format string, arguments ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, arguments...))
		}
	}
	wrong(o.Namespace == "", "namespace: name the one that the pods shall run in")
	wrong(len(o.Classes) == 0, "class: name one runtime class at least")
	for i, class := range o.Classes {
		wrong(len(validation.IsDNS1123Subdomain(class)) > 0, "class %q: this is not the name of a runtime class", class)
		wrong(slices.Contains(o.Classes[:i], class), "class %q is named twice", class)
	}
	for _, count := range []struct {
		name        string
		value, from int
	}{{"pods", o.Pods, 0}, {"runs", o.Runs, 0}, {"warmup", o.Warmup, 0}, {"max-pods", o.MaxPods, 1}} {
		wrong(count.value < count.from, "%s %d: use %d or more", count.name, count.value, count.from)
	}
	wrong(o.Pods == 0 && o.Runs == 0, "pods and runs are both 0: there is nothing to measure")
	wrong(o.Parallel < 1 || o.Parallel > MostParallel, "parallel %d: use 1 to %d", o.Parallel, MostParallel)
	wrong(o.Timeout < time.Second || o.Timeout > MostTimeout, "timeout %s: use 1s to %s", o.Timeout, MostTimeout)
	wrong(o.Image == "", "image: name one")
	policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	wrong(!slices.Contains(policies, o.PullPolicy), "image-pull-policy %q: use one of %v", o.PullPolicy, policies)
	wrong(o.RunAsUser < 0, "run-as-user %d: use 0 or more", o.RunAsUser)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, requested := o.Requests[name]
		limit, limited := o.Limits[name]
		wrong(!requested || request.Sign() <= 0, "requests: give %s a positive quantity: the scheduler counts on it", name)
		wrong(!limited || limit.Sign() <= 0, "limits: give %s a positive quantity: nothing else protects the node", name)
		wrong(requested && limited && request.Cmp(limit) > 0, "requests: %s is above its limit of %s", name, &limit)
	}
	names := []string{Start}
	for _, w := range append(builtin(), o.Workloads...) {
		wrong(slices.Contains(names, w.Name), "workload %q: there is one of that name already", w.Name)
		wrong(len(validation.IsDNS1123Label(w.Name)) > 0, "workload %q: use lower case letters, digits and -, at most 63", w.Name)
		wrong(w.Command == "", "workload %q has no command", w.Name)
		names = append(names, w.Name)
	}
	wrong(o.Runs == 0 && len(o.Workloads) > 0, "runs is 0, and there are workloads to run")
	return errors.Join(errs...)
}

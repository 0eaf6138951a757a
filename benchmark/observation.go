package benchmark

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// observation is what a watch has told of one pod. Its times are those of the observer's
// clock, since the API's have a resolution of a second and come from several machines.
type observation struct {
	running, done time.Time // zero while not seen
	pod           *corev1.Pod
}

// see takes in the pod as an event brought it.
func (o *observation) see(pod *corev1.Pod, at time.Time) {
	o.pod = pod
	state := o.state()
	switch {
	case o.over():
	case state.Terminated != nil || finished(pod):
		o.done = at
	case state.Running != nil && o.running.IsZero():
		o.running = at
	}
}

func (o *observation) over() bool { return !o.done.IsZero() }

// finished: a pod can end without its container having a state, when the kubelet refuses
// or evicts it.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func (o *observation) state() corev1.ContainerState {
	for _, status := range o.pod.Status.ContainerStatuses {
		if status.Name == container {
			return status.State
		}
	}
	return corev1.ContainerState{}
}

// err is why the pod, which is over, did not do its work; nil if it did.
func (o *observation) err() error {
	ended := o.state().Terminated
	switch {
	case ended == nil:
		return fmt.Errorf("the pod ended without having run: %s", said(o.pod.Status.Reason, o.pod.Status.Message))
	case o.pod.Status.Phase == corev1.PodFailed && o.pod.Status.Reason != "":
		return errors.New(said(o.pod.Status.Reason, o.pod.Status.Message)) // evicted, say
	case ended.ExitCode != 0:
		return fmt.Errorf("exit code %d (%s)", ended.ExitCode, said(ended.Reason, ended.Message))
	}
	return nil
}

// waiting is what the pod waits for, as far as the cluster says.
func (o *observation) waiting() string {
	if o.pod == nil {
		return "nothing was seen of it"
	}
	if waiting := o.state().Waiting; waiting != nil {
		return said(waiting.Reason, waiting.Message)
	}
	for _, condition := range o.pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return said(condition.Reason, condition.Message)
		}
	}
	if o.state().Running != nil {
		return "its container runs"
	}
	return "phase " + cmp.Or(string(o.pod.Status.Phase), "unknown")
}

func said(reason, message string) string {
	if reason == "" || message == "" {
		return cmp.Or(reason, message, "no reason given")
	}
	return reason + ": " + message
}

// Measurement is what came of one sample.
type Measurement struct {
	Sample
	// Node is where the pod ran.
	Node string
	// Running is the time from the API server's answer to the creation until the container
	// was seen running. It is zero where it was first seen when it had ended.
	Running time.Duration
	// Done is the time from that answer until the container was seen to have ended.
	Done time.Duration
	// Elapsed is what the command took, by the clock in the container.
	Elapsed time.Duration
	// Err is why the pod counts for nothing; nil if it counts.
	Err error
}

// measured is the pod's measurement, which is over. Created is when the API server's
// answer to its creation was there.
func (o *observation) measured(s *Sample, created time.Time) Measurement {
	m := Measurement{Sample: *s, Node: o.pod.Spec.NodeName, Err: o.err()}
	if m.Err != nil {
		return m
	}
	if m.Elapsed, m.Err = elapsed(o.state().Terminated.Message); m.Err != nil {
		return m
	}
	// An event can overtake the answer. No pod takes no time, which is what zero says.
	since := func(t time.Time) time.Duration { return max(t.Sub(created), 1) }
	m.Done = since(o.done)
	if !o.running.IsZero() {
		m.Running = since(o.running)
	}
	return m
}

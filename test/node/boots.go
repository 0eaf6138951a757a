//go:build linux

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReportKernel is a command that says what it runs on. Its last line is there when all are.
const ReportKernel = "uname -r; dmesg 2>&1 | head -n 3; echo reported"

// BootsGVisor returns an error for each thing that speaks against a pod's container being in gVisor: what
// the kernel says within, what runsc says on the node, and which node that is.
func (c *Cluster) BootsGVisor(ctx context.Context, pod *corev1.Pod) error {
	log, err := c.report(ctx, pod)
	if err != nil {
		return err
	}
	var errs []error
	if !strings.Contains(log, "Starting gVisor") {
		errs = append(errs, fmt.Errorf("dmesg in pod %s does not say that gVisor started: %q", pod.Name, log))
	}
	if release, err := kernel(); err != nil || strings.HasPrefix(log, release+"\n") {
		errs = append(errs, errors.Join(err, fmt.Errorf("the kernel in pod %s is the node's own, %s", pod.Name, release)))
	}
	return errors.Join(append(errs, on(pod, GVisorNode), c.listed(ctx, pod, Sandboxes))...)
}

// BootsOnHost returns an error for each thing that speaks against a pod's container being one of crun or
// runc, on the node's own kernel.
func (c *Cluster) BootsOnHost(ctx context.Context, pod *corev1.Pod, runtime Containers) error {
	log, err := c.report(ctx, pod)
	if err != nil {
		return err
	}
	var errs []error
	if release, err := kernel(); err != nil || !strings.HasPrefix(log, release+"\n") {
		errs = append(errs, errors.Join(err, fmt.Errorf("the kernel in pod %s is not the node's own, %s: %q", pod.Name, release, log)))
	}
	if strings.Contains(log, "gVisor") {
		errs = append(errs, fmt.Errorf("dmesg in pod %s speaks of gVisor: %q", pod.Name, log))
	}
	return errors.Join(append(errs, on(pod, CrunNode), c.listed(ctx, pod, runtime))...)
}

// Containers is the command that lists a runtime's containers on its node.
type Containers []string

// The runtimes' lists, as their shims keep them.
var (
	Crun      = Containers{"crun", "--root", "/run/" + CrunNode + "/crun/k8s.io", "list", "--format", "json"}
	Runc      = Containers{"runc", "--root", "/run/" + CrunNode + "/runc/k8s.io", "list", "--format", "json"}
	Sandboxes = Containers{"runsc", "--root", "/run/containerd/runsc/k8s.io", "list", "-format", "json"}
)

// listed returns an error unless the runtime lists the pod's first container as running.
func (c *Cluster) listed(ctx context.Context, pod *corev1.Pod, runtime Containers) error {
	out, err := c.Command(ctx, runtime[0], runtime[1:]...).Output()
	if err != nil {
		return fmt.Errorf("list the containers of %s: %w", runtime[0], err)
	}
	var containers []struct{ ID, Status string }
	if err := json.Unmarshal(out, &containers); err != nil {
		return fmt.Errorf("read the list of %s: %w: %s", runtime[0], err, out)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	for _, container := range containers {
		if container.ID == id && container.Status == "running" {
			return nil
		}
	}
	return fmt.Errorf("%s does not list the container of pod %s as running", runtime[0], pod.Name)
}

// report waits for the pod's first container to have run [ReportKernel], and returns what it said. The
// pod is read again.
func (c *Cluster) report(ctx context.Context, pod *corev1.Pod) (string, error) {
	if err := c.Reach(ctx, pod, corev1.PodRunning, corev1.PodSucceeded); err != nil {
		return "", err
	}
	return c.Log(ctx, pod, pod.Spec.Containers[0].Name)
}

// Log waits for a container to have run [ReportKernel], and returns what it said.
func (c *Cluster) Log(ctx context.Context, pod *corev1.Pod, container string) (string, error) {
	var log string
	err := WaitFor(ctx, func(ctx context.Context) error {
		var err error
		if log, err = c.Kubectl(ctx, "logs", "--namespace="+pod.Namespace, pod.Name, "--container="+container); err != nil {
			return err
		}
		if !strings.HasSuffix(log, "reported\n") {
			return fmt.Errorf("it has said %q so far", log)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the log of container %s in pod %s: %w", container, pod.Name, err)
	}
	return log, nil
}

// Reach waits for a pod to be in one of some phases, and reads it again.
func (c *Cluster) Reach(ctx context.Context, pod *corev1.Pod, phases ...corev1.PodPhase) error {
	err := WaitFor(ctx, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if phase := pod.Status.Phase; !slices.Contains(phases, phase) {
			return fmt.Errorf("it is %s, and its containers %+v", phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	if err == nil {
		return nil
	}
	events, unread := c.Kubectl(ctx, "events", "--namespace="+pod.Namespace, "--for=pod/"+pod.Name)
	return fmt.Errorf("wait for pod %s to be %v: %w\n%s", pod.Name, phases, errors.Join(err, unread), events)
}

func on(pod *corev1.Pod, node string) error {
	if pod.Spec.NodeName != node {
		return fmt.Errorf("pod %s is on node %q, want %s", pod.Name, pod.Spec.NodeName, node)
	}
	return nil
}

// kernel is the release of the machine's own kernel.
func kernel() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}

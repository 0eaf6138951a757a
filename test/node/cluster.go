//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// Cluster is a control plane with two nodes, in the namespaces that this process is in. It ends with
// them.
type Cluster struct {
	*controlplane.ControlPlane
	// Client is an administrator's.
	Client client.Client

	progress io.Writer
	began    time.Time
}

// Start starts the cluster, and returns when both nodes are ready.
func Start(ctx context.Context, progress io.Writer) (*Cluster, error) {
	c := &Cluster{progress: progress, began: time.Now()}
	var err error
	if c.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Progress:          progress,
		Dir:               filepath.Join(Scratch(), "controlplane"),
		Scheduler:         true,
		ControllerManager: true,
		Kubelets:          true,
		Address:           serviceAddress + ":443",
		ConfigureAPIServer: func(flags *envtest.Arguments) {
			flags.Set("advertise-address", apiAddress).
				Set("service-cluster-ip-range", serviceRange).
				Set("authorization-mode", "Node", "RBAC").
				Set("enable-admission-plugins", "NodeRestriction").
				Set("kubelet-preferred-address-types", "InternalIP")
		},
	}); err != nil {
		return nil, err
	}
	if c.Client, err = client.New(c.Config, client.Options{}); err != nil {
		return nil, err
	}
	started := make(chan error, len(nodes))
	for _, n := range nodes {
		dir := filepath.Join(Scratch(), n.name)
		m := &machine{
			Name: n.name, Pool: n.pool, Address: n.address, Pods: n.pods, Taint: n.taint,
			Dir: dir, Bin: c.BinDir, Socket: "/run/" + n.name + "/containerd.sock",
			Handler: n.handler, setting: n.setting,
			Group: group(n.name), Pause: pause, Plugins: plugins, cluster: c,
		}
		go func() {
			err := m.start(ctx)
			if err != nil {
				err = fmt.Errorf("start node %s: %w", m.Name, err)
			}
			started <- err
		}()
	}
	err = c.startProxy()
	for range nodes {
		err = errors.Join(err, <-started)
	}
	if err == nil {
		err = errors.Join(WaitFor(ctx, c.nodesReady), WaitFor(ctx, proxyReady))
	}
	if err != nil {
		logs, unread := c.Logs(20)
		return nil, fmt.Errorf("%w\n%s", errors.Join(err, unread), logs)
	}
	c.Say("both nodes are ready")
	return c, nil
}

// Say reports a step, and the time since the cluster was begun.
func (c *Cluster) Say(step string) {
	fmt.Fprintf(c.progress, "%6.1fs %s\n", time.Since(c.began).Seconds(), step)
}

// proxyHealth is where kube-proxy says whether its rules are in force.
const proxyHealth = "127.0.0.1:10256"

func proxyReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxyHealth+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("kube-proxy is not ready: %s", response.Status)
	}
	return nil
}

// startProxy starts one kube-proxy for both nodes, which share a network namespace. It is told to leave
// the machine's conntrack settings alone.
func (c *Cluster) startProxy() error {
	kubeconfig, err := c.AddUserKubeconfig("system:kube-proxy")
	if err != nil {
		return err
	}
	return c.run("kube-proxy", controlplane.KubeProxy,
		"--kubeconfig="+kubeconfig,
		"--hostname-override="+CrunNode,
		"--proxy-mode=nftables",
		"--detect-local-mode=ClusterCIDR",
		"--cluster-cidr="+podRange,
		"--conntrack-max-per-core=0",
		"--conntrack-min=0",
		"--conntrack-tcp-timeout-established=0s",
		"--conntrack-tcp-timeout-close-wait=0s",
		"--healthz-bind-address="+proxyHealth,
		"--metrics-bind-address=127.0.0.1:10249",
		"--v=2")
}

func (c *Cluster) nodesReady(ctx context.Context) error {
	for _, n := range nodes {
		node := &corev1.Node{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: n.name}, node); err != nil {
			return err
		}
		if len(node.Status.RuntimeHandlers) == 0 {
			return fmt.Errorf("node %s reports no handlers", n.name)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return fmt.Errorf("node %s is not ready: %s", n.name, condition.Message)
			}
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return fmt.Errorf("node %s is tainted %s", n.name, taint.Key)
			}
		}
	}
	return nil
}

// patience is how long anything may take that is over in seconds where nothing else runs.
const patience = 2 * time.Minute

// WaitFor asks until the answer is nil, and returns the last one with the error.
func WaitFor(ctx context.Context, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

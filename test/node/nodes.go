//go:build linux

package node

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

//go:embed files
var embedded embed.FS

// The nodes of the cluster.
const (
	CrunNode   = "crun-1"
	GVisorNode = "gvisor-1"
)

// nodes are what differs between them. The setting is what node-config is told of the handler, with the
// node's folder in it.
var nodes = []struct{ name, pool, address, pods, taint, handler, setting string }{
	{name: CrunNode, pool: "crun", address: apiAddress, pods: "10.89.1.0/24", handler: "crun", setting: "--binary=crun=%s/crun.sh"},
	{name: GVisorNode, pool: "gvisor", address: "10.88.0.2", pods: "10.89.2.0/24", taint: "gvisor", handler: "runsc", setting: "--runtime-config=runsc=%s/runsc.toml"},
}

// machine is a node that runs. Its exported fields are what the templates in files/ take.
type machine struct {
	Name, Pool, Address, Pods, Taint string
	Handler                          string
	// Dir is the node's own folder, Bin the programs', Socket containerd's.
	Dir, Bin, Socket string
	Group            string
	Pause, Plugins   string

	setting string
	cluster *Cluster
}

// files are the templates of a node by where their results go.
var files = map[string]string{
	"containerd.toml": "containerd.toml",
	"runsc.toml":      "runsc.toml",
	"crun.sh":         "crun.sh",
	"cni.conflist":    "cni/10-bridge.conflist",
	"kubelet.yaml":    "kubelet.yaml",
}

// write writes the node's files: its own, and the one with which the product makes it offer a runtime.
func (m *machine) write(ctx context.Context) error {
	templates, err := template.ParseFS(embedded, "files/*")
	if err != nil {
		return err
	}
	for from, to := range files {
		var content bytes.Buffer
		if err := templates.ExecuteTemplate(&content, from, m); err != nil {
			return err
		}
		if err := m.file(to, content.Bytes()); err != nil {
			return err
		}
	}
	config := m.cluster.Command(ctx, Product(), "node-config", "--cri=containerd", "--handlers="+m.Handler,
		"--cgroup-driver=cgroupfs", "--default-runtime=", fmt.Sprintf(m.setting, m.Dir))
	dropIn, err := config.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", config, err)
	}
	return m.file("conf.d/50-runtimeclass-router.toml", dropIn)
}

func (m *machine) file(name string, content []byte) error {
	path := filepath.Join(m.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o755)
}

// start starts containerd, gives it the images, and starts the kubelet.
func (m *machine) start(ctx context.Context) error {
	if err := errors.Join(m.write(ctx), makeGroups(m.Name)); err != nil {
		return err
	}
	if err := m.cluster.run("containerd-"+m.Name, controlplane.Containerd, "--config="+filepath.Join(m.Dir, "containerd.toml")); err != nil {
		return err
	}
	if err := WaitFor(ctx, func(context.Context) error {
		connection, err := net.Dial("unix", m.Socket)
		if err == nil {
			err = connection.Close()
		}
		return err
	}); err != nil {
		return fmt.Errorf("wait for containerd: %w", err)
	}
	archives, err := filepath.Glob(filepath.Join(images(Scratch()), "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if out, err := m.cluster.Command(ctx, controlplane.Ctr, "--address="+m.Socket, "--namespace=k8s.io", "images", "import", archive).CombinedOutput(); err != nil {
			return fmt.Errorf("import %s: %w\n%s", filepath.Base(archive), err, out)
		}
	}
	kubeconfig, err := m.cluster.AddUserKubeconfig("system:node:"+m.Name, "system:nodes")
	if err != nil {
		return err
	}
	return m.cluster.run("kubelet-"+m.Name, controlplane.Kubelet,
		"--config="+filepath.Join(m.Dir, "kubelet.yaml"),
		"--kubeconfig="+kubeconfig,
		"--hostname-override="+m.Name,
		"--node-ip="+m.Address,
		"--node-labels=example.com/pool="+m.Pool,
		"--root-dir="+filepath.Join(m.Dir, "kubelet"),
		"--cert-dir="+filepath.Join(m.Dir, "kubelet-pki"),
		"--v=2")
}

// run starts a program that ends with the namespaces. Its log is named after the first argument.
func (c *Cluster) run(log, program string, args ...string) error {
	file, err := os.Create(filepath.Join(Scratch(), log+".log"))
	if err != nil {
		return err
	}
	defer file.Close() // the process has a descriptor of its own
	cmd := c.Command(context.Background(), program, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", log, err)
	}
	go func() { _ = cmd.Wait() }() // whoever waits for it to be ready says what its log has
	return nil
}

// Command is one of the cluster's programs, or of the machine's, with the rights of an administrator.
func (c *Cluster) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	path := filepath.Join(c.BinDir, program)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = program
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.KubeconfigPath, "PATH="+c.BinDir+":"+os.Getenv("PATH"))
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Logs returns the end of each log.
func (c *Cluster) Logs(lines int) (string, error) {
	paths, err := filepath.Glob(filepath.Join(Scratch(), "*.log"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		text := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
		fmt.Fprintf(&all, "== %s\n%s\n", filepath.Base(path), strings.Join(text[max(0, len(text)-lines):], "\n"))
	}
	return all.String(), nil
}

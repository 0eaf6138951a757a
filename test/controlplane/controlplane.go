package controlplane

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Options says what [Start] starts. The zero value is an API server and its etcd.
type Options struct {
	// Progress takes a line for each step, most of them while programs are built. Nil discards them.
	Progress io.Writer

	// Dir is the scratch folder for certificates, kubeconfig files, logs and etcd's data. It must be
	// empty or not exist, and stays when the control plane is stopped. If Dir is empty, a temporary
	// folder is made, and removed by Stop.
	Dir string

	// Scheduler starts kube-scheduler.
	Scheduler bool

	// ControllerManager starts kube-controller-manager, without the controllers that evict pods from
	// Nodes that have no kubelet, unless Kubelets says otherwise. With it the ServiceAccount admission plugin is on, since namespaces
	// then get their default ServiceAccount; without it the plugin is off, as in envtest.
	ControllerManager bool

	// Kubelets says that whoever starts the control plane gives each Node a kubelet.
	Kubelets bool

	// Address is an IP address that is this machine's, and a port: that of the API server's Service, for
	// pods to reach it by. The address is in the certificate; this machine's own clients use the loopback
	// interface. The default is a free port of that interface alone.
	Address string

	// DisableAdmissionPlugins turns off admission plugins of the API server, by name.
	DisableAdmissionPlugins []string

	// ConfigureAPIServer, if not nil, changes the API server's flags after all defaults of this
	// package are set. See envtest.Arguments for how to set, append and disable a flag.
	ConfigureAPIServer func(*envtest.Arguments)

	// StartTimeout bounds how long each program may take to become healthy. The default is a minute.
	StartTimeout time.Duration
}

// ControlPlane is a running control plane. Only Stop ends it.
type ControlPlane struct {
	// Release is what runs.
	Release Release
	// Config is for an administrator, a member of system:masters, without a rate limit worth
	// mentioning.
	Config *rest.Config
	// KubeconfigPath is a kubeconfig file for the same administrator.
	KubeconfigPath string
	// BinDir holds the programs. Those not needed yet may be absent; see [Build].
	BinDir string
	// Dir is the scratch folder, with a log named after each program, such as kube-apiserver.log.
	Dir string

	progress io.Writer
	timeout  time.Duration
	ownsDir  bool

	guard      *guard
	plane      *envtest.ControlPlane
	components []*component // started after the API server, in no order
	mu         sync.Mutex   // guards components
	authority  sync.Mutex   // guards envtest's certificate authority, which counts serial numbers unguarded
	stop       func() error
}

// newControlPlane makes the scratch folder and starts the watchdog over it.
func newControlPlane(opts Options, release Release, bin string) (*ControlPlane, error) {
	cp := &ControlPlane{
		Release:  release,
		BinDir:   bin,
		progress: opts.Progress,
		timeout:  opts.StartTimeout,
		ownsDir:  opts.Dir == "",
	}
	if cp.progress == nil {
		cp.progress = io.Discard
	}
	if cp.timeout == 0 {
		cp.timeout = time.Minute
	}
	cp.stop = sync.OnceValue(cp.shutdown)
	var err error
	if cp.Dir, err = scratch(opts.Dir); err != nil {
		return nil, err
	}
	remove := ""
	if cp.ownsDir {
		remove = cp.Dir
	}
	if cp.guard, err = newGuard(filepath.Join(cp.Dir, "run"), bin, remove); err != nil {
		if cp.ownsDir {
			_ = os.RemoveAll(cp.Dir)
		}
		return nil, fmt.Errorf("prepare scratch folder: %w", err)
	}
	return cp, nil
}

// scratch returns the absolute path of an empty folder: dir, or a new temporary one.
func scratch(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "controlplane-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("scratch folder %s is not empty", dir)
	}
	return dir, nil
}

func (cp *ControlPlane) logPath(name string) string { return filepath.Join(cp.Dir, name+".log") }

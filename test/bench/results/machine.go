package results

import (
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// Machine is what it was measured on. It tells nothing by which a machine could be found.
type Machine struct {
	CPU        string
	Cores      int
	Go         string
	Kubernetes string
	Etcd       string
}

// ThisMachine is the one that this process runs on.
func ThisMachine() (Machine, error) {
	release, err := controlplane.Chosen()
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Cores:      runtime.NumCPU(),
		Go:         strings.TrimPrefix(runtime.Version(), "go"),
		Kubernetes: strings.TrimPrefix(release.Version, "v"),
		Etcd:       strings.TrimPrefix(controlplane.EtcdVersion, "v"),
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m, err
	}
	cpus, err := fs.CPUInfo()
	if err != nil {
		return m, err
	}
	if len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	return m, nil
}

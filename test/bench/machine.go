package main

import (
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// machine tells nothing by which a machine could be found.
func machine() (results.Machine, error) {
	release, err := controlplane.Chosen()
	if err != nil {
		return results.Machine{}, err
	}
	m := results.Machine{
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

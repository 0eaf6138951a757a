package controlplane

import (
	"fmt"
	"slices"
	"strings"
)

// The programs of a control plane that [Build] can build.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
	Kubectl           = "kubectl"
	Helm              = "helm"
)

// The programs of a node that [Build] can build, of the newest release. [Start] starts none of them.
const (
	Kubelet        = "kubelet"
	KubeProxy      = "kube-proxy"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"
	Runsc          = "runsc"
	RunscShim      = "containerd-shim-runsc-v1"
)

// The versions of the programs that are the same for every [Release], as the modules under
// modules/ pin them.
const (
	EtcdVersion       = "v3.7.3"
	HelmVersion       = "v4.3.1"
	ContainerdVersion = "v2.4.2"
	GVisorVersion     = "v0.0.0-20260905035102-160fafc42237"
)

// Binaries returns the names of a control plane's programs, in the order in which they are best built.
func Binaries() []string {
	return []string{Etcd, APIServer, Scheduler, ControllerManager, Kubectl, Helm}
}

// NodeBinaries returns the names of a node's programs, in the order in which they are best built.
func NodeBinaries() []string {
	return []string{Kubelet, KubeProxy, Containerd, ContainerdShim, Ctr, Runsc, RunscShim}
}

// ofEveryRelease reports whether the program is built once, and used with each release.
func ofEveryRelease(name string) bool {
	return name == Etcd || name == Kubectl || name == Helm || slices.Contains(NodeBinaries(), name)
}

// source says where a program comes from.
type source struct {
	module  string // folder under modules/
	pkg     string // main package, as the go command is given it in that folder
	version string
	ldflags string
	patched bool // the module takes a package that is changed: see patchShim
}

func (r Release) sourceOf(name string) (source, error) {
	switch name {
	case Etcd:
		return source{module: "etcd", pkg: ".", version: EtcdVersion, ldflags: "-s -w"}, nil
	case APIServer, Scheduler, ControllerManager, Kubectl, Kubelet, KubeProxy:
		return source{
			module:  r.module,
			pkg:     "k8s.io/kubernetes/cmd/" + name,
			version: r.Version,
			ldflags: "-s -w " + r.versionFlags(),
		}, nil
	case Helm:
		return source{
			module:  "helm",
			pkg:     "helm.sh/helm/v4/cmd/helm",
			version: HelmVersion,
			ldflags: "-s -w -X helm.sh/helm/v4/internal/version.version=" + HelmVersion,
		}, nil
	case Containerd, ContainerdShim, Ctr:
		const module = "github.com/containerd/containerd/v2"
		return source{
			module:  "containerd",
			pkg:     module + "/cmd/" + name,
			version: ContainerdVersion,
			ldflags: "-s -w -X " + module + "/version.Version=" + ContainerdVersion,
		}, nil
	case Runsc, RunscShim:
		src := source{
			module:  "gvisor",
			pkg:     "gvisor.dev/gvisor/runsc",
			version: GVisorVersion,
			ldflags: "-s -w -X gvisor.dev/gvisor/runsc/version.version=" + GVisorVersion,
		}
		if name == RunscShim {
			src.pkg, src.patched = ".", true
		}
		return src, nil
	}
	return source{}, fmt.Errorf("unknown program %q: want one of %s", name,
		strings.Join(append(Binaries(), NodeBinaries()...), ", "))
}

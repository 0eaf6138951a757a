package controlplane

import (
	"fmt"
	"strings"
)

// The programs that [Build] can build.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
	Kubectl           = "kubectl"
	Helm              = "helm"
)

// The versions of the programs that are the same for every [Release], as the modules under
// modules/ pin them.
const (
	EtcdVersion = "v3.7.3"
	HelmVersion = "v4.3.1"
)

// Binaries returns the names of all programs, in the order in which they are best built.
func Binaries() []string {
	return []string{Etcd, APIServer, Scheduler, ControllerManager, Kubectl, Helm}
}

// ofEveryRelease reports whether the program is built once, and used with each release.
func ofEveryRelease(name string) bool {
	return name == Etcd || name == Kubectl || name == Helm
}

// source says where a program comes from.
type source struct {
	module  string // folder under modules/
	pkg     string // main package, as the go command is given it in that folder
	version string
	ldflags string
}

func (r Release) sourceOf(name string) (source, error) {
	switch name {
	case Etcd:
		return source{module: "etcd", pkg: ".", version: EtcdVersion, ldflags: "-s -w"}, nil
	case APIServer, Scheduler, ControllerManager, Kubectl:
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
	}
	return source{}, fmt.Errorf("unknown program %q: want one of %s", name, strings.Join(Binaries(), ", "))
}

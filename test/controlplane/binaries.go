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

// The versions of the programs, as the modules under modules/ pin them.
const (
	KubernetesVersion = "v1.37.2"
	EtcdVersion       = "v3.7.3"
	HelmVersion       = "v4.3.1"
)

// Binaries returns the names of all programs, in the order in which they are best built.
func Binaries() []string {
	return []string{Etcd, APIServer, Scheduler, ControllerManager, Kubectl, Helm}
}

// source says where a program comes from.
type source struct {
	module  string // folder under modules/
	pkg     string // main package, as the go command is given it in that folder
	version string
	ldflags string
}

func sourceOf(name string) (source, error) {
	switch name {
	case Etcd:
		return source{module: "etcd", pkg: ".", version: EtcdVersion, ldflags: "-s -w"}, nil
	case APIServer, Scheduler, ControllerManager, Kubectl:
		return source{
			module:  "kubernetes",
			pkg:     "k8s.io/kubernetes/cmd/" + name,
			version: KubernetesVersion,
			ldflags: "-s -w " + kubernetesVersionFlags(),
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

// kubernetesVersionFlags stamps the version where Kubernetes' own release script
// (hack/lib/version.sh) does. Without it the API server reports v0.0.0-master, and a chart's
// kubeVersion constraint refuses it.
func kubernetesVersionFlags() string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+KubernetesVersion,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

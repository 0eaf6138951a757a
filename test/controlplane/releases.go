package controlplane

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// VersionVariable is the environment variable that chooses the [Release] that runs, as "1.36".
const VersionVariable = "KUBERNETES_VERSION"

// Release is a version of Kubernetes whose control plane can be built.
type Release struct {
	// Version is complete, such as v1.37.2.
	Version string

	module string // folder under modules/ that pins it
}

// Releases returns the versions there are, the newest first.
func Releases() []Release {
	return []Release{
		{Version: "v1.37.2", module: "kubernetes"},
		{Version: "v1.36.3", module: "kubernetes-1.36"},
		{Version: "v1.35.4", module: "kubernetes-1.35"},
		{Version: "v1.34.4", module: "kubernetes-1.34"},
	}
}

// Newest is the release that runs unless another one is chosen. Its kubectl is every release's.
func Newest() Release { return Releases()[0] }

// Chosen returns the release that [VersionVariable] names, and the newest where it is empty.
func Chosen() (Release, error) {
	wanted := os.Getenv(VersionVariable)
	if wanted == "" {
		return Newest(), nil
	}
	var known []string
	for _, release := range Releases() {
		if wanted == release.Minor() {
			return release, nil
		}
		known = append(known, release.Minor())
	}
	return Release{}, fmt.Errorf("%s: unknown version %q: want one of %s", VersionVariable, wanted, strings.Join(known, ", "))
}

// Minor returns the version without its patch, as "1.36".
func (r Release) Minor() string {
	major, minor := r.numbers()
	return major + "." + minor
}

// AtLeast reports whether the release is Kubernetes 1.minor or later.
func (r Release) AtLeast(minor int) bool {
	_, own := r.numbers()
	number, err := strconv.Atoi(own)
	return err == nil && number >= minor
}

func (r Release) numbers() (major, minor string) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(r.Version, "v"), ".")
	minor, _, _ = strings.Cut(rest, ".")
	return major, minor
}

// versionFlags stamps the version where Kubernetes' own release script (hack/lib/version.sh)
// does. Without it the API server reports v0.0.0-master, and a chart's kubeVersion constraint
// refuses it.
func (r Release) versionFlags() string {
	major, minor := r.numbers()
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+r.Version,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

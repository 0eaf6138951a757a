package policies

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ownLabels and ownAnnotations are what a controller writes on each copy of a pod to tell it
// from the others (pkg/controller/statefulset and pkg/controller/job in Kubernetes).
var (
	ownLabels = []string{
		"statefulset.kubernetes.io/pod-name",
		"apps.kubernetes.io/pod-index",
		"batch.kubernetes.io/job-completion-index",
	}
	ownAnnotations = []string{"batch.kubernetes.io/job-completion-index"}
)

// Where the API server mounts the service account's token, and how it names the
// volume (plugin/pkg/admission/serviceaccount in Kubernetes).
const (
	tokenVolumePrefix = "kube-api-access-"
	tokenMountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// forgetIdentity takes out what tells a pod from its copies: the volume of the service
// account's token with its mounts, which the API server injects under a random name; and of
// a StatefulSet's pod the pod's name at the end of its claims' names.
func (p *Pod) forgetIdentity() error {
	token, err := p.forgetVolumes()
	if err != nil || token == "" {
		return err
	}
	for i, list := range p.lists {
		if !hasContainers(i) {
			continue
		}
		for _, container := range list {
			raw := container.get("volumeMounts")
			if !bytes.Contains(raw, []byte(token)) {
				continue
			}
			without, err := withoutMounts(raw, token)
			if err != nil {
				return err
			}
			container.set("volumeMounts", without)
		}
	}
	return nil
}

// forgetVolumes returns the name of the token's volume, if there was one. Only what has its
// shape is taken out: a hostPath volume under such a name stays for the policy to see.
func (p *Pod) forgetVolumes() (token string, err error) {
	claimSuffix, err := p.claimSuffix()
	if err != nil {
		return "", err
	}
	raw := p.spec.get("volumes")
	if raw == nil || !bytes.Contains(raw, []byte(tokenVolumePrefix)) && claimSuffix == "" {
		return "", nil
	}
	w := newRewriter(raw)
	err = w.items(func() error {
		volume, err := w.ReadValue()
		if err != nil {
			return err
		}
		if name := tokenVolume(volume); name != "" {
			token = name
			return nil
		}
		return w.append(withoutSuffix(volume, claimSuffix))
	})
	if err != nil {
		return "", fmt.Errorf("spec.volumes: %w", err)
	}
	p.spec.set("volumes", w.out)
	return token, nil
}

// withoutSuffix cuts the suffix off the name of a volume's claim.
func withoutSuffix(volume jsontext.Value, suffix string) (jsontext.Value, error) {
	var v struct {
		PersistentVolumeClaim struct {
			ClaimName string `json:"claimName"`
		} `json:"persistentVolumeClaim"`
	}
	if suffix == "" {
		return volume, nil
	}
	if err := unmarshal(volume, &v); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(v.PersistentVolumeClaim.ClaimName, suffix) {
		return volume, nil
	}
	w := newRewriter(slices.Clone(volume))
	err := w.members(func(name string) error {
		if name != "persistentVolumeClaim" {
			return w.copy()
		}
		return w.members(func(name string) error {
			if name != "claimName" {
				return w.copy()
			}
			if err := w.SkipValue(); err != nil {
				return err
			}
			return w.append(jsontext.AppendQuote(nil, strings.TrimSuffix(v.PersistentVolumeClaim.ClaimName, suffix)))
		})
	})
	return w.out, err
}

// claimSuffix ends the name of every claim that a StatefulSet makes for the pod; "" for
// other pods.
func (p *Pod) claimSuffix() (string, error) {
	var name string
	if err := unmarshal(p.metadata.get("name"), &name); err != nil {
		return "", fmt.Errorf("metadata.name: %w", err)
	}
	for _, owner := range p.lists[list("metadata", "ownerReferences")] {
		if string(owner.get("kind")) == `"StatefulSet"` && name != "" {
			return "-" + name, nil
		}
	}
	return "", nil
}

// tokenVolume returns the name of a volume that is the token's, and "" of any other.
func tokenVolume(raw jsontext.Value) string {
	if !bytes.Contains(raw, []byte(tokenVolumePrefix)) {
		return ""
	}
	var volume map[string]jsontext.Value
	var name string
	if unmarshal(raw, &volume) != nil || unmarshal(volume["name"], &name) != nil {
		return ""
	}
	if _, projected := volume["projected"]; !projected || len(volume) != 2 || !strings.HasPrefix(name, tokenVolumePrefix) {
		return ""
	}
	return name
}

// withoutMounts takes the token's out of a container's mounts.
func withoutMounts(mounts jsontext.Value, token string) (jsontext.Value, error) {
	w := newRewriter(mounts)
	err := w.items(func() error {
		mount, err := w.ReadValue()
		if err != nil || tokenMount(mount, token) {
			return err
		}
		return w.append(mount, nil)
	})
	return w.out, err
}

func tokenMount(raw jsontext.Value, token string) bool {
	if !bytes.Contains(raw, []byte(token)) {
		return false
	}
	var mount struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
	}
	return unmarshal(raw, &mount) == nil && mount.Name == token && mount.MountPath == tokenMountPath
}

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// AddUser returns a configuration that authenticates, by client certificate, as a user of that name
// and groups. RBAC grants the user nothing but what its groups and bindings do. The same name may be
// used again, with other groups for instance.
func (cp *ControlPlane) AddUser(name string, groups ...string) (*rest.Config, error) {
	user, err := cp.user(name, groups)
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// AddUserKubeconfig is [ControlPlane.AddUser] for programs: it returns the path of a kubeconfig file
// in the scratch folder. A name that is used again overwrites the file.
func (cp *ControlPlane) AddUserKubeconfig(name string, groups ...string) (string, error) {
	_, path, err := cp.addUser("users", name, groups...)
	return path, err
}

// addUser adds a user and writes its kubeconfig file into the given folder of the scratch folder.
// The components' own users are kept apart from those that a test names.
func (cp *ControlPlane) addUser(folder, name string, groups ...string) (*rest.Config, string, error) {
	user, err := cp.user(name, groups)
	if err != nil {
		return nil, "", err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, "", fmt.Errorf("write kubeconfig of user %s: %w", name, err)
	}
	dir := filepath.Join(cp.Dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("write kubeconfig of user %s: %w", name, err)
	}
	path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, "", fmt.Errorf("write kubeconfig of user %s: %w", name, err)
	}
	return user.Config(), path, nil
}

func (cp *ControlPlane) user(name string, groups []string) (*envtest.AuthenticatedUser, error) {
	// A test that is throttled on its own side measures its client.
	base := &rest.Config{QPS: 1000, Burst: 2000}
	cp.authority.Lock()
	defer cp.authority.Unlock()
	user, err := cp.plane.AddUser(envtest.User{Name: name, Groups: groups}, base)
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user, nil
}

package nodeconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pelletier/go-toml/v2"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/nodeconfig"
)

// options are those of testdata/cluster.yaml, of the named handlers or all.
func options(t *testing.T, only ...string) nodeconfig.Options {
	t.Helper()
	manifests, err := catalog.ReadManifests([]string{"testdata/cluster.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := nodeconfig.Handlers(manifests.Catalog(), only)
	if err != nil {
		t.Fatal(err)
	}
	return nodeconfig.Options{Source: "a test", Handlers: handlers, DefaultRuntime: nodeconfig.Default(handlers), SystemdCgroup: true}
}

// decode is strict: a key that is not one of into's is a fault.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// crioFile has the keys that CRI-O documents of what a drop-in sets: docs/crio.conf.5.md,
// tables crio.runtime and crio.runtime.runtimes, as read 2026-11-30 in its main branch
// (https://github.com/cri-o/cri-o/blob/main/docs/crio.conf.5.md), the same as the struct
// RuntimeHandler of its pkg/config.
type crioFile struct {
	CRIO struct {
		Runtime struct {
			DefaultRuntime string                 `toml:"default_runtime"`
			Runtimes       map[string]crioRuntime `toml:"runtimes"`
		} `toml:"runtime"`
	} `toml:"crio"`
}

type crioRuntime struct {
	RuntimePath                  string            `toml:"runtime_path"`
	RuntimeType                  string            `toml:"runtime_type"`
	RuntimeRoot                  string            `toml:"runtime_root"`
	RuntimeConfigPath            string            `toml:"runtime_config_path"`
	PrivilegedWithoutHostDevices bool              `toml:"privileged_without_host_devices"`
	AllowedAnnotations           []string          `toml:"allowed_annotations"`
	DefaultAnnotations           map[string]string `toml:"default_annotations"`
	MonitorPath                  string            `toml:"monitor_path"`
	MonitorCgroup                string            `toml:"monitor_cgroup"`
	MonitorEnv                   []string          `toml:"monitor_env"`
	MonitorExecCgroup            string            `toml:"monitor_exec_cgroup"`
	PlatformRuntimePaths         map[string]string `toml:"platform_runtime_paths"`
	RuntimePullImage             bool              `toml:"runtime_pull_image"`
	InheritDefaultRuntime        bool              `toml:"inherit_default_runtime"`
}

func TestCRIO(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Binaries = map[string]string{"crun": "/usr/bin/crun"}
	config, err := nodeconfig.CRIO(o)
	if err != nil {
		t.Fatal(err)
	}
	var got crioFile
	decode(t, config.Text, &got)
	const kata = "/opt/kata/share/defaults/kata-containers/configuration-"
	want := map[string]crioRuntime{
		// runc's table is that of CRI-O's package, Firecracker's images would need block
		// devices, and edera and nvidia are not known.
		"crun":      {RuntimePath: "/usr/bin/crun", RuntimeType: "oci", RuntimeRoot: "/run/crun"},
		"youki":     {RuntimePath: "/usr/local/bin/youki", RuntimeType: "oci", RuntimeRoot: "/run/youki"},
		"gvisor":    {RuntimePath: "/usr/local/bin/containerd-shim-runsc-v1", RuntimeType: "vm", RuntimeRoot: "/run/runsc", RuntimeConfigPath: "/etc/containerd/runsc.toml"},
		"runsc-kvm": {RuntimePath: "/usr/local/bin/containerd-shim-runsc-v1", RuntimeType: "vm", RuntimeRoot: "/run/runsc", RuntimeConfigPath: "/etc/containerd/runsc-kvm.toml"},
		"kata-qemu": {RuntimePath: "/opt/kata/bin/containerd-shim-kata-v2", RuntimeType: "vm", RuntimeRoot: "/run/vc", RuntimeConfigPath: kata + "qemu.toml", PrivilegedWithoutHostDevices: true},
		"kata-clh":  {RuntimePath: "/opt/kata/bin/containerd-shim-kata-v2", RuntimeType: "vm", RuntimeRoot: "/run/vc", RuntimeConfigPath: kata + "clh.toml", PrivilegedWithoutHostDevices: true},
	}
	if diff := cmp.Diff(want, got.CRIO.Runtime.Runtimes); diff != "" {
		t.Errorf("runtimes (-want +got):\n%s", diff)
	}
	if got.CRIO.Runtime.DefaultRuntime != "crun" {
		t.Errorf("default_runtime is %q", got.CRIO.Runtime.DefaultRuntime)
	}
	notes(t, config, "kata-fc", "edera", "nvidia")
}

// notes holds the notes of a config to one for each of the handlers.
func notes(t *testing.T, config nodeconfig.Config, handlers ...string) {
	t.Helper()
	for _, handler := range handlers {
		if !strings.Contains(strings.Join(config.Notes, "\n"), "handler "+handler) {
			t.Errorf("no note on %s among %q", handler, config.Notes)
		}
	}
	if len(config.Notes) != len(handlers) {
		t.Errorf("%d notes, want %d: %q", len(config.Notes), len(handlers), config.Notes)
	}
}

// stub takes the # away that a table for an unknown handler has.
func stub(text, handler string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "# [") && strings.HasSuffix(l, "runtimes."+handler+"]") {
			for ; strings.HasPrefix(lines[i], "# "); i++ {
				lines[i] = strings.TrimPrefix(lines[i], "# ")
			}
		}
	}
	return strings.Join(lines, "\n")
}

// TestStubs: what an admin fills in is a table.
func TestStubs(t *testing.T) {
	t.Parallel()
	config, err := nodeconfig.CRIO(options(t, "edera", "nvidia"))
	if err != nil {
		t.Fatal(err)
	}
	var got crioFile
	decode(t, config.Text, &got)
	if len(got.CRIO.Runtime.Runtimes) > 0 || got.CRIO.Runtime.DefaultRuntime != "" {
		t.Errorf("there is more than comments: %+v", got)
	}
	decode(t, stub(stub(config.Text, "edera"), "nvidia"), &got)
	if edera := got.CRIO.Runtime.Runtimes["edera"]; edera.RuntimePath != "/FILL/IN" || !edera.PrivilegedWithoutHostDevices {
		t.Errorf("edera's class is labelled, and the table is %+v", edera)
	}
	if nvidia := got.CRIO.Runtime.Runtimes["nvidia"]; nvidia.RuntimePath != "/FILL/IN" || nvidia.PrivilegedWithoutHostDevices {
		t.Errorf("nvidia's class is not labelled, and the table is %+v", nvidia)
	}
	notes(t, config, "edera", "nvidia")
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	got := options(t, "kata-qemu", "crun", "crun").Handlers
	want := []nodeconfig.Handler{
		{Name: "crun", Family: "crun", Isolation: catalog.HostKernel, Classes: []string{"crun"}},
		{Name: "kata-qemu", Family: "kata-qemu", Isolation: catalog.GuestKernel, Classes: []string{"builds", "kata"}, Withheld: []string{"builds"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHandlersRefuses(t *testing.T) {
	t.Parallel()
	class := func(name, handler string) *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler}
	}
	for _, test := range []struct {
		name    string
		classes []*nodev1.RuntimeClass
		only    []string
		want    string
	}{
		{"nothing", nil, nil, "there is no RuntimeClass"},
		{"an absent handler", []*nodev1.RuntimeClass{class("gvisor", "runsc"), class("a", "crun")}, []string{"gvisor"}, `handler "gvisor": no RuntimeClass has it; there are crun, runsc`},
		{"TOML in a handler", []*nodev1.RuntimeClass{class("a", "crun]\nroot = \"/\"\n[x")}, nil, `runtime class "a" with handler "crun]\nroot`},
		{"TOML in a name", []*nodev1.RuntimeClass{class("a\nroot = 1", "crun")}, nil, `runtime class "a\nroot = 1"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := nodeconfig.Handlers(catalog.Build(test.classes, nil), test.only); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	for want, only := range map[string][]string{"crun": nil, "runc": {"runc", "gvisor"}, "": {"youki", "gvisor", "kata-fc"}} {
		if got := nodeconfig.Default(options(t, only...).Handlers); got != want {
			t.Errorf("of %v: %q, want %q", only, got, want)
		}
	}
}

// TestOptionsRefused: each fault is told with its handler, all at once.
func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.DefaultRuntime = "edera"
	o.Binaries = map[string]string{"crun": "bin/crun", "nvidia": "/usr/bin/nvidia-container-runtime", "youki": "/usr/bin/you\nki"}
	o.Files = map[string]string{"crun": "/etc/crun.toml", "kata-fc": ""}
	o.Snapshotters = map[string]string{"gone": "devmapper"}
	_, err := nodeconfig.Containerd(o, 3)
	if err == nil {
		t.Fatal("nothing is refused")
	}
	const known = "no such handler is configured; those that can be are: crun, gvisor, kata-clh, kata-fc, kata-qemu, runc, runsc-kvm, youki"
	want := []string{
		`binary of "crun": "bin/crun" is not an absolute path`,
		`binary of "nvidia": ` + known,
		`binary of "youki": "/usr/bin/you\nki" cannot be one`,
		`file of "kata-fc": "" cannot be one`,
		`snapshotter of "gone": ` + known,
		`file of "crun": crun reads none`,
		`default runtime "edera": ` + known,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := nodeconfig.Containerd(options(t), 1); err == nil || !strings.Contains(err.Error(), "use 2 ") {
		t.Errorf("version 1: %v", err)
	}
	o = options(t)
	o.DefaultRuntime = "kata-fc"
	if _, err := nodeconfig.CRIO(o); err == nil || !strings.Contains(err.Error(), "CRI-O cannot run") {
		t.Errorf("Firecracker as CRI-O's default: %v", err)
	}
}

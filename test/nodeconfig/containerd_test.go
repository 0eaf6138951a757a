package nodeconfig

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pelletier/go-toml/v2"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/nodeconfig"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// buildContainerd returns the path of a containerd.
func buildContainerd(t *testing.T) string {
	t.Helper()
	binaries, err := controlplane.Build(t.Context(), t.Output(), controlplane.Containerd)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(binaries, controlplane.Containerd)
}

// dump is what `containerd config dump` prints of the tables that matter here. It has the
// version that containerd itself works with, whatever that of its files.
type dump struct {
	Imports []string `toml:"imports"`
	Plugins struct {
		Images struct {
			PinnedImages map[string]string `toml:"pinned_images"`
		} `toml:"io.containerd.cri.v1.images"`
		Runtime struct {
			Containerd struct {
				DefaultRuntimeName string             `toml:"default_runtime_name"`
				Runtimes           map[string]runtime `toml:"runtimes"`
			} `toml:"containerd"`
		} `toml:"io.containerd.cri.v1.runtime"`
	} `toml:"plugins"`
}

type runtime struct {
	Type                         string         `toml:"runtime_type"`
	Path                         string         `toml:"runtime_path"`
	PodAnnotations               []string       `toml:"pod_annotations"`
	PrivilegedWithoutHostDevices bool           `toml:"privileged_without_host_devices"`
	Snapshotter                  string         `toml:"snapshotter"`
	Options                      map[string]any `toml:"options"`
}

// run is `containerd --config FILE config ...`. A key that containerd does not know is a
// warning of its; here it is a fault.
func run(t *testing.T, containerd, file string, arguments ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), containerd, append([]string{"--config", file, "config"}, arguments...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || strings.Contains(stderr.String(), "unknown key") {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	return stdout.String()
}

// load puts a drop-in where its head says, below a main file that containerd itself wrote,
// and returns what containerd makes of both.
func load(t *testing.T, containerd, dropIn string) dump {
	t.Helper()
	directory := t.TempDir()
	main, folder := filepath.Join(directory, "config.toml"), filepath.Join(directory, "conf.d")
	const imports, image = "/etc/containerd/conf.d/*.toml", "registry.example.com/pause:1"
	text := run(t, containerd, main, "default")
	if !strings.Contains(text, "imports = ['"+imports+"']") || !strings.Contains(dropIn, `imports = ["`+imports+`"]`) {
		t.Fatalf("containerd's own main file imports another folder than a drop-in says:\n%s\n%s", text, dropIn)
	}
	text = strings.ReplaceAll(text, imports, folder+"/*.toml")
	text = strings.Replace(text, "      sandbox = 'registry.k8s.io/pause", "      sandbox = '"+image+"' # ", 1)
	write(t, main, text)
	write(t, filepath.Join(folder, "50-runtimeclass-router.toml"), dropIn)
	var d dump
	if err := toml.Unmarshal([]byte(run(t, containerd, main, "dump")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Plugins.Images.PinnedImages["sandbox"] != image {
		t.Errorf("the main file's pause image is lost: %v", d.Plugins.Images.PinnedImages)
	}
	return d
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func options(t *testing.T) nodeconfig.Options {
	t.Helper()
	manifests, err := catalog.ReadManifests([]string{"../../nodeconfig/testdata/cluster.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := nodeconfig.Handlers(manifests.Catalog(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return nodeconfig.Options{Source: "a test", Handlers: handlers, DefaultRuntime: nodeconfig.Default(handlers), SystemdCgroup: true}
}

// oci is a runtime that containerd's own shim calls.
func oci(binary string) runtime {
	return runtime{Type: "io.containerd.runc.v2", Options: map[string]any{"BinaryName": binary, "SystemdCgroup": true}}
}

func kata(handler, configuration string) runtime {
	return runtime{
		Type: "io.containerd." + handler + ".v2", Path: "/opt/kata/bin/containerd-shim-kata-v2", PrivilegedWithoutHostDevices: true,
		Options: map[string]any{"ConfigPath": "/opt/kata/share/defaults/kata-containers/configuration-" + configuration + ".toml"},
	}
}

func gvisor(file string) runtime {
	return runtime{Type: "io.containerd.runsc.v1", Options: map[string]any{"TypeUrl": "io.containerd.runsc.v1.options", "ConfigPath": file}}
}

// TestContainerd: both versions come out of a real containerd as the same runtimes.
func TestContainerd(t *testing.T) {
	t.Parallel()
	containerd := buildContainerd(t)
	firecracker := kata("kata-fc", "fc")
	firecracker.Snapshotter = "devmapper"
	pinned := oci("/opt/youki")
	want := map[string]runtime{
		"crun": oci("crun"), "runc": oci("runc"), "youki": pinned,
		"gvisor": gvisor("/etc/containerd/runsc.toml"), "runsc-kvm": gvisor("/etc/containerd/runsc-kvm.toml"),
		"kata-qemu": kata("kata-qemu", "qemu"), "kata-clh": kata("kata-clh", "clh"), "kata-fc": firecracker,
	}
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Binaries = map[string]string{"youki": "/opt/youki"}
			config, err := nodeconfig.Containerd(o, version)
			if err != nil {
				t.Fatal(err)
			}
			got := load(t, containerd, config.Text).Plugins.Runtime.Containerd
			// What the main file says of runc besides stays, and is not compared.
			maps.DeleteFunc(got.Runtimes["runc"].Options, func(key string, _ any) bool { _, ours := want["runc"].Options[key]; return !ours })
			if diff := cmp.Diff(want, got.Runtimes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.DefaultRuntimeName != "crun" {
				t.Errorf("default_runtime_name is %q", got.DefaultRuntimeName)
			}
		})
		t.Run(fmt.Sprintf("version %d filled in", version), func(t *testing.T) {
			t.Parallel()
			config, err := nodeconfig.Containerd(options(t), version)
			if err != nil {
				t.Fatal(err)
			}
			text := uncomment(t, uncomment(t, uncomment(t, config.Text, "runtimes.edera]"), "runtimes.nvidia]"), "devmapper']")
			got := load(t, containerd, text).Plugins.Runtime.Containerd.Runtimes
			if edera := got["edera"]; edera.Type != "io.containerd.FILL-IN.v2" || !edera.PrivilegedWithoutHostDevices {
				t.Errorf("edera's class is labelled, and the table is %+v", edera)
			}
			if nvidia := got["nvidia"]; nvidia.Options["BinaryName"] != "/FILL/IN" || nvidia.PrivilegedWithoutHostDevices {
				t.Errorf("nvidia's class is not labelled, and the table is %+v", nvidia)
			}
		})
	}
}

// uncomment moves a table that a comment proposes to the end of the text.
func uncomment(t *testing.T, text, table string) string {
	t.Helper()
	var kept, moved []string
	in := false
	for _, line := range strings.Split(text, "\n") {
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
		in = isComment && (in || strings.HasSuffix(comment, table))
		if in {
			moved = append(moved, comment)
		} else {
			kept = append(kept, line)
		}
	}
	if moved == nil {
		t.Fatalf("no comment proposes a table %s:\n%s", table, text)
	}
	return strings.Join(append(kept, moved...), "\n")
}

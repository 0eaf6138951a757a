package catalog

import (
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClassifyJudgesByHandler(t *testing.T) {
	t.Parallel()
	tests := []struct {
		handler   string
		family    string
		isolation Isolation
	}{
		{"runc", "runc", HostKernel},
		{"crun", "crun", HostKernel},
		{"youki", "youki", HostKernel},
		{"runsc", "gvisor", UserSpaceKernel},
		{"runsc-kvm", "gvisor", UserSpaceKernel},
		{"gvisor", "gvisor", UserSpaceKernel},
		{"kata", "kata-qemu", GuestKernel},
		{"kata-fc", "kata-fc", GuestKernel},
		{"kata-clh", "kata-clh", GuestKernel},
		{"kata-qemu", "kata-qemu", GuestKernel},
		{"kata-remote", "kata-remote", GuestKernel},
		{"sysbox-runc", "sysbox-runc", Unknown},
		{"nvidia", "nvidia", Unknown},
		{"", "", Unknown},
		{"runc-v2", "runc-v2", Unknown},       // no trailing * in the row of runc
		{"my-kata-fc", "my-kata-fc", Unknown}, // a prefix, not a substring
		{"RUNSC", "RUNSC", Unknown},
	}
	for _, test := range tests {
		t.Run(test.handler, func(t *testing.T) {
			t.Parallel()
			family, isolation := Classify(test.handler)
			if family != test.family || isolation != test.isolation {
				t.Errorf("got %q, %q, want %q, %q", family, isolation, test.family, test.isolation)
			}
		})
	}
}

func TestIsolationLabelLowersAnyAndRaisesOnlyUnknown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler, label string
		want           Isolation
		note           string // "" for none
	}{
		"lowers kata to host-kernel":    {"kata-fc", "host-kernel", HostKernel, ""},
		"lowers kata to user space":     {"kata-fc", "user-space-kernel", UserSpaceKernel, ""},
		"lowers gvisor":                 {"runsc", "host-kernel", HostKernel, ""},
		"repeats what is known":         {"crun", "host-kernel", HostKernel, ""},
		"raises unknown to the top":     {"enclave", "guest-kernel", GuestKernel, ""},
		"raises unknown by one":         {"enclave", "user-space-kernel", UserSpaceKernel, ""},
		"names unknown host-kernel":     {"sysbox-runc", "host-kernel", HostKernel, ""},
		"does not raise crun":           {"crun", "guest-kernel", HostKernel, `handler "crun" is known to be host-kernel`},
		"does not raise runc by one":    {"runc", "user-space-kernel", HostKernel, `handler "runc" is known to be host-kernel`},
		"does not raise youki":          {"youki", "user-space-kernel", HostKernel, `handler "youki" is known to be host-kernel`},
		"does not raise gvisor":         {"runsc", "guest-kernel", UserSpaceKernel, `handler "runsc" is known to be user-space-kernel`},
		"invalid value is noted":        {"runsc", "strong", UserSpaceKernel, `unknown isolation "strong"`},
		"invalid value raises nothing":  {"enclave", "strong", Unknown, `unknown isolation "strong"`},
		"unknown is no value to state":  {"enclave", "unknown", Unknown, `unknown isolation "unknown"`},
		"a capital letter is no value":  {"enclave", "Guest-Kernel", Unknown, `unknown isolation "Guest-Kernel"`},
		"no label leaves known alone":   {"kata", "", GuestKernel, ""},
		"no label leaves unknown alone": {"enclave", "", Unknown, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Handler: test.handler}
			if test.label != "" {
				class.Labels = map[string]string{LabelIsolation: test.label}
			}
			rc := Build([]*nodev1.RuntimeClass{class}, nil).RuntimeClass("c")
			if rc.Isolation != test.want {
				t.Errorf("isolation %q, want %q", rc.Isolation, test.want)
			}
			notes := strings.Join(rc.Notes, "\n")
			if (test.note == "") != (len(rc.Notes) == 0) || !strings.Contains(notes, test.note) {
				t.Errorf("notes %q, want %q", rc.Notes, test.note)
			}
		})
	}
}

func TestAtLeastOrdersIsolations(t *testing.T) {
	t.Parallel()
	order := map[Isolation]int{"": 0, Unknown: 0, "nonsense": 0, HostKernel: 0, UserSpaceKernel: 1, GuestKernel: 2}
	for a, i := range order {
		for b, j := range order {
			if got := a.AtLeast(b); got != (i >= j) {
				t.Errorf("%q.AtLeast(%q) = %t", a, b, got)
			}
		}
	}
}

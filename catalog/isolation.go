package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Isolation says where the boundary between a pod and the host sits.
type Isolation string

// The isolations, weakest first. Unknown counts as HostKernel: what nobody has
// vouched for isolates nothing.
const (
	Unknown         Isolation = "unknown"
	HostKernel      Isolation = "host-kernel"
	UserSpaceKernel Isolation = "user-space-kernel"
	GuestKernel     Isolation = "guest-kernel"
)

// Isolations lists the values that a configuration or a label may state,
// weakest first.
func Isolations() []Isolation { return []Isolation{HostKernel, UserSpaceKernel, GuestKernel} }

// ParseIsolation reads one of [Isolations].
func ParseIsolation(s string) (Isolation, error) {
	if i := Isolation(s); slices.Contains(Isolations(), i) {
		return i, nil
	}
	return Unknown, fmt.Errorf("unknown isolation %q: use one of %v", s, Isolations())
}

// AtLeast reports whether i isolates as well as floor, or better.
func (i Isolation) AtLeast(floor Isolation) bool { return i.rank() >= floor.rank() }

func (i Isolation) rank() int { return max(0, slices.Index(Isolations(), i)) }

// handlers maps the names that clusters give a CRI handler to the runtime behind
// it. The first matching row wins; a trailing * matches any rest.
//
// Sources: the installation guides of gVisor ("runsc"), Kata Containers
// (kata-deploy's "kata-qemu", "kata-fc", "kata-clh"), crun and youki, and
// CRI-O's and containerd's sample configurations. sysbox-runc is left out on
// purpose: it shares the host's kernel and needs no entry to be judged so.
var handlers = []struct {
	pattern   string
	family    string // "" keeps the handler's own name
	isolation Isolation
}{
	{"runc", "runc", HostKernel},
	{"crun", "crun", HostKernel},
	{"youki", "youki", HostKernel},
	{"runsc*", "gvisor", UserSpaceKernel},
	{"gvisor", "gvisor", UserSpaceKernel},
	{"kata", "kata-qemu", GuestKernel},
	{"kata*", "", GuestKernel},
}

// Classify says which runtime a CRI handler stands for and how it isolates. A
// handler that is not known is a family of its own with isolation Unknown.
// Judging by the handler and never by the RuntimeClass's name is what catches a
// class called gvisor with handler runc.
func Classify(handler string) (family string, isolation Isolation) {
	for _, h := range handlers {
		prefix, isPrefix := strings.CutSuffix(h.pattern, "*")
		if handler == h.pattern || isPrefix && strings.HasPrefix(handler, prefix) {
			if h.family == "" {
				return handler, h.isolation
			}
			return h.family, h.isolation
		}
	}
	return handler, Unknown
}

// labelled applies a class's isolation label: it may lower any isolation and
// raise only Unknown. The note is empty, or says what was ignored.
func labelled(handler, label string, known Isolation) (result Isolation, note string) {
	if label == "" {
		return known, ""
	}
	stated, err := ParseIsolation(label)
	switch {
	case err != nil:
		return known, fmt.Sprintf("label %s: %v", LabelIsolation, err)
	case known == Unknown, known.AtLeast(stated):
		return stated, ""
	default:
		return known, fmt.Sprintf("label %s=%s is ignored: handler %q is known to be %s and a label may only lower it",
			LabelIsolation, label, handler, known)
	}
}

package backstop

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// prefix is that of the annotations.
const prefix = "guards." + catalog.Prefix

// Keys of the annotations. A list is one entry a line, sorted unless its order says
// something; an empty list is the empty string. All keys are always there.
const (
	// KeyLevels are the trust levels, most trusted first.
	KeyLevels = prefix + "levels"
	// KeyOpenLevels are the levels whose floor is host-kernel.
	KeyOpenLevels = prefix + "open-levels"
	// KeyDefaultTrust and KeyDefaultMode are those of namespaces without a trust label.
	KeyDefaultTrust = prefix + "default-trust"
	KeyDefaultMode  = prefix + "default-mode"
	// KeyClasses are LEVEL/CLASS, the classes that meet the floor of each level that is
	// not open.
	KeyClasses = prefix + "classes"
	// KeyNodes are CLASS/NODE, the pools of those classes; a line * where they are too
	// many to list.
	KeyNodes = prefix + "nodes"
	// KeyFallback is the class that a pod without one is given; empty for none.
	KeyFallback = prefix + "fallback"
	// KeyExceptions are NAMESPACE/CLASS/SERVICEACCOUNT of today's exceptions; * is any
	// service account.
	KeyExceptions = prefix + "exceptions"

	// KeyPrivilegedClasses and KeyGPUClasses are the classes of KeyClasses in which
	// privileged containers, and GPUs, are let through.
	KeyPrivilegedClasses = prefix + "privileged-classes"
	KeyGPUClasses        = prefix + "gpu-classes"
	// KeyHostPaths are paths that may be mounted read-only.
	KeyHostPaths = prefix + "allowed-host-paths"
	// KeyGPUResources, KeyDeviceResources and KeyAnnotations are names, or prefixes that
	// end in *.
	KeyGPUResources    = prefix + "gpu-resources"
	KeyDeviceResources = prefix + "allowed-device-resources"
	KeyAnnotations     = prefix + "allowed-runtime-annotations"
	// KeyVirtualNodes are the virtual nodes that isolate: for each a line of what binds a
	// pod to it, with commas between, as KEY=VALUE of a node selector or
	// scheduler:NAME.
	KeyVirtualNodes = prefix + "virtual-nodes"
)

// nodesLimit bounds KeyNodes, in bytes: the annotations of an object hold 256 KiB
// (TotalAnnotationSizeLimitB of k8s.io/apimachinery).
const nodesLimit = 128 << 10

// neverMounted are host paths that no configuration allows: devices, and what shows or
// changes the host's kernel. They are those of the policy's rules host-device and
// host-tracing.
var neverMounted = []string{"/dev", "/proc", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/lib/modules"}

// State is what the parameters are made of.
type State struct {
	Config  *policies.Config
	Catalog *catalog.Catalog
	// Nodes are the names of the cluster's nodes, in any order.
	Nodes []string
	// Fallback names the class for KeyFallback; if empty, it is the first general
	// candidate of the least trusted level that isolates, and preferably one whose pool
	// is ready.
	Fallback string
	// Date is the UTC day that exceptions are judged by, as 2006-01-02.
	Date string
}

// Parameters returns the annotations. They are the same for the same state. The
// error names a configuration that the guards cannot express; there are then no
// parameters. A Fallback that isolates too little, or does not exist, leaves KeyFallback
// empty, and note says so.
func Parameters(s State) (data map[string]string, note string, err error) {
	if err := expressible(s.Config); err != nil {
		return nil, "", err
	}
	classes := s.classes()
	fallback, note := s.fallback()
	return map[string]string{
		KeyLevels:            lines(s.levels(func(policies.Level) bool { return true })),
		KeyOpenLevels:        lines(s.levels(open)),
		KeyDefaultTrust:      s.Config.UnlabelledNamespaces.Trust,
		KeyDefaultMode:       string(s.Config.UnlabelledNamespaces.Mode),
		KeyClasses:           sorted(s.levelClasses()),
		KeyNodes:             s.nodes(classes),
		KeyFallback:          fallback,
		KeyExceptions:        sorted(s.exceptions()),
		KeyPrivilegedClasses: sorted(names(classes, s.privileged)),
		KeyGPUClasses:        sorted(names(classes, func(c *catalog.RuntimeClass) bool { return listed(s.Config.GPURuntimes, c) })),
		KeyHostPaths:         sorted(slices.DeleteFunc(slices.Clone(s.Config.AllowedHostPaths), never)),
		KeyGPUResources:      sorted(s.Config.GPUResources),
		KeyDeviceResources:   sorted(s.Config.AllowedDeviceResources),
		KeyAnnotations:       sorted(s.Config.AllowedRuntimeAnnotations),
		KeyVirtualNodes:      sorted(s.virtualNodes()),
	}, note, nil
}

// expressible refuses what would be read as something else: a line break in a list, and
// a level that no label can name.
func expressible(config *policies.Config) error {
	for _, level := range config.Levels {
		if faults := validation.IsValidLabelValue(level.Name); level.Name == "" || len(faults) > 0 {
			return fmt.Errorf("trust level %q is not a label value: %s", level.Name, strings.Join(faults, "; "))
		}
	}
	for _, list := range [][]string{config.AllowedHostPaths, config.GPUResources, config.AllowedDeviceResources, config.AllowedRuntimeAnnotations} {
		for _, entry := range list {
			if strings.Contains(entry, "\n") {
				return fmt.Errorf("%q has a line break", entry)
			}
		}
	}
	return nil
}

func (s *State) levels(wanted func(policies.Level) bool) []string {
	var found []string
	for _, level := range s.Config.Levels {
		if wanted(level) {
			found = append(found, level.Name)
		}
	}
	return found
}

// open levels ask for no isolation; nothing of theirs is guarded.
func open(level policies.Level) bool { return catalog.HostKernel.AtLeast(level.Floor) }

// classes are those that meet the lowest floor of the levels that are guarded.
func (s *State) classes() []*catalog.RuntimeClass {
	var found []*catalog.RuntimeClass
	for i := range s.Catalog.RuntimeClasses {
		class := &s.Catalog.RuntimeClasses[i]
		if slices.ContainsFunc(s.Config.Levels, func(l policies.Level) bool { return !open(l) && class.Isolation.AtLeast(l.Floor) }) {
			found = append(found, class)
		}
	}
	return found
}

func (s *State) levelClasses() []string {
	var found []string
	for _, level := range s.Config.Levels {
		for i := range s.Catalog.RuntimeClasses {
			if class := &s.Catalog.RuntimeClasses[i]; !open(level) && class.Isolation.AtLeast(level.Floor) {
				found = append(found, level.Name+"/"+class.Name)
			}
		}
	}
	return found
}

// nodes lists the pools as far as there is room. A pod that is bound by name to a node
// outside of its class's pool is refused by the kubelet too, only later.
func (s *State) nodes(classes []*catalog.RuntimeClass) string {
	var found []string
	for _, node := range s.Nodes {
		for _, class := range s.Catalog.Pools(node) {
			if slices.ContainsFunc(classes, func(c *catalog.RuntimeClass) bool { return c.Name == class }) {
				found = append(found, class+"/"+node)
			}
		}
	}
	if list := sorted(found); len(list) <= nodesLimit {
		return list
	}
	return "*"
}

// exceptions are wider than the configuration's, which may narrow by labels as well: the
// webhook judges those.
func (s *State) exceptions() []string {
	var found []string
	for _, e := range s.Config.Exceptions {
		if s.Date > e.Until {
			continue
		}
		accounts := e.ServiceAccounts
		if len(accounts) == 0 {
			accounts = []string{"*"}
		}
		for _, namespace := range e.Namespaces {
			for _, account := range accounts {
				found = append(found, strings.Join([]string{namespace, e.RuntimeClassName, account}, "/"))
			}
		}
	}
	return found
}

func (s *State) virtualNodes() []string {
	var found []string
	for _, node := range s.Config.IsolatingVirtualNodes {
		var binding []string
		if node.SchedulerName != "" {
			binding = append(binding, "scheduler:"+node.SchedulerName)
		}
		for key, value := range node.NodeSelector {
			binding = append(binding, key+"="+value)
		}
		slices.Sort(binding)
		found = append(found, strings.Join(binding, ","))
	}
	return found
}

// privileged says where the policy's row of that name is softened to a warning.
func (s *State) privileged(class *catalog.RuntimeClass) bool {
	return listed(s.Config.PrivilegedRuntimes, class) || class.Isolation == catalog.GuestKernel && class.HostDevicesWithheld
}

func never(allowed string) bool {
	return strings.Contains(allowed, "\n") || slices.ContainsFunc(neverMounted, func(root string) bool {
		return strings.HasPrefix(path.Clean(allowed)+"/", root+"/")
	})
}

// listed reports whether a list of runtimes means the class: by its family, or by its
// name as class:NAME.
func listed(runtimes []string, class *catalog.RuntimeClass) bool {
	return slices.Contains(runtimes, class.Family) || slices.Contains(runtimes, "class:"+class.Name)
}

func names(classes []*catalog.RuntimeClass, wanted func(*catalog.RuntimeClass) bool) []string {
	var found []string
	for _, class := range classes {
		if wanted(class) {
			found = append(found, class.Name)
		}
	}
	return found
}

func sorted(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return lines(slices.Compact(list))
}

func lines(list []string) string { return strings.Join(list, "\n") }

//go:build linux

package node

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Snapshot is what a run could leave behind on a machine, by kind, a line for each.
type Snapshot map[string][]string

// Take looks at the machine, or at the namespaces that this process is in, for the named run. The
// machine may have other work: processes and cgroups that cannot be of this run are left out.
func Take(run string) (Snapshot, error) {
	snapshot := Snapshot{}
	for kind, look := range map[string]func(run string) ([]string, error){
		"mounts":    lookAtMounts,
		"links":     lookAtLinks,
		"routes":    lookAtRoutes,
		"filters":   lookAtFilters,
		"cgroups":   lookAtGroups,
		"processes": lookAtProcesses,
		"settings":  lookAtSettings,
		"folders":   lookAtFolders,
	} {
		lines, err := look(run)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", kind, err)
		}
		slices.Sort(lines)
		snapshot[kind] = lines
	}
	return snapshot, nil
}

// Difference lists what the other has, or has not, with its kind.
func (s Snapshot) Difference(other Snapshot) []string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(s)) {
		counts := map[string]int{}
		for _, line := range s[kind] {
			counts[line]--
		}
		for _, line := range other[kind] {
			counts[line]++
		}
		for _, line := range slices.Sorted(maps.Keys(counts)) {
			switch n := counts[line]; {
			case n < 0:
				all = append(all, kind+": gone: "+line)
			case n > 0:
				all = append(all, kind+": new: "+line)
			}
		}
	}
	return all
}

func lookAtMounts(string) ([]string, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	return lines(content), err
}

func lookAtLinks(string) ([]string, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(link.Name, " ", link.Flags, " ", addresses))
	}
	return all, nil
}

// expiry is how long a route that a router announced is good for.
var expiry = regexp.MustCompile(`expires \d+sec`)

func lookAtRoutes(string) ([]string, error) {
	var all []string
	for _, family := range []string{"-4", "-6"} {
		out, err := exec.Command("ip", family, "route", "show", "table", "all").Output()
		if err != nil {
			return nil, fmt.Errorf("ip route: %w", err)
		}
		all = append(all, lines(expiry.ReplaceAll(out, nil))...)
	}
	return all, nil
}

// lookAtFilters also reads which tables of iptables' old interface are loaded: to ask for their content
// would load them.
func lookAtFilters(string) ([]string, error) {
	out, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("nft list ruleset: %w\n%s", err, out)
	}
	all := lines(out)
	for _, file := range []string{"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"} {
		if content, err := os.ReadFile(file); err == nil { // absent where the kernel has no such tables
			all = append(all, lines(content)...)
		}
	}
	return all, nil
}

// lookAtGroups lists what stands at the top of each hierarchy, where every program here that makes
// cgroups does, and whatever is named after the run. Groups below others come and go with whatever else
// the machine does.
func lookAtGroups(run string) ([]string, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, root := range roots {
		below, err := folders(root)
		if err != nil {
			return nil, err
		}
		for _, group := range below {
			another := strings.Contains(group, prefix(run)) && !strings.Contains(group, run)
			if top := filepath.Dir(group) == root; top && !another || strings.Contains(group, run) {
				all = append(all, group)
			}
		}
	}
	return all, nil
}

// prefix is what the names of all runs begin with.
func prefix(run string) string { return strings.TrimRight(run, "0123456789") }

// lookAtProcesses finds the run's name in the command line, the environment or the cgroup of whatever
// belongs to it.
func lookAtProcesses(run string) ([]string, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, process := range all {
		for _, file := range []string{"cmdline", "environ", "cgroup"} {
			content, err := os.ReadFile(filepath.Join(process, file))
			if err == nil && bytes.Contains(content, []byte(run)) { // an error: it has ended
				name, _ := os.ReadFile(filepath.Join(process, "comm"))
				found = append(found, filepath.Base(process)+" "+strings.TrimSpace(string(name)))
				break
			}
		}
	}
	return found, nil
}

func lookAtSettings(string) ([]string, error) {
	keys := slices.Collect(maps.Keys(sysctls))
	keys = append(keys, "net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/netfilter/nf_conntrack_max", "kernel/hostname")
	var all []string
	for _, key := range keys {
		if content, err := os.ReadFile("/proc/sys/" + key); err == nil { // not every kernel has each
			all = append(all, key+"="+strings.TrimSpace(string(content)))
		}
	}
	return all, nil
}

// lookAtFolders lists where the nodes' programs like to make folders.
func lookAtFolders(string) ([]string, error) {
	var all []string
	for _, dir := range []string{"/opt", "/usr/libexec", "/var/lib", "/var/log", "/etc"} {
		found, err := filepath.Glob(dir + "/*")
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func lines(content []byte) []string {
	return strings.Split(strings.TrimRight(string(content), "\n"), "\n")
}

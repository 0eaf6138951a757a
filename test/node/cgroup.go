//go:build linux

package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cgroupRoot = "/sys/fs/cgroup"

// mount is a line of mountinfo.
type mount struct{ point, kind string }

func mounts() ([]mount, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mount
	for line := range strings.Lines(string(content)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		kind, _, _ := strings.Cut(after, " ")
		if len(fields) > 4 {
			all = append(all, mount{point: fields[4], kind: kind})
		}
	}
	return all, nil
}

// hierarchies are where cgroups are made: with version 1 a folder for each controller, else the one of
// version 2.
func hierarchies() ([]string, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	var first, second []string
	for _, m := range all {
		switch {
		case m.kind == "cgroup" && strings.HasPrefix(m.point, cgroupRoot):
			first = append(first, m.point)
		case m.kind == "cgroup2" && m.point == cgroupRoot:
			second = append(second, m.point)
		}
	}
	if len(first)+len(second) == 0 {
		return nil, errors.New("no cgroups are mounted at " + cgroupRoot)
	}
	return append(first, second...), nil
}

// group is the name of a node's cgroup.
func group(node string) string { return Name() + "-" + node }

// makeGroups makes a node's cgroups. A new cpuset of version 1 is empty, and takes no process.
func makeGroups(node string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, group(node))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			inherited, err := os.ReadFile(filepath.Join(root, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), inherited, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeGroups are the cgroups of this run's nodes.
func nodeGroups() ([]string, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, root := range roots {
		found, err := filepath.Glob(filepath.Join(root, Name()+"-*"))
		if err != nil {
			return nil, err
		}
		groups = append(groups, found...)
	}
	return groups, nil
}

// folders are the folders at and below a path, the deepest last. One that goes meanwhile is none.
func folders(root string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			all = append(all, path)
		}
		return nil
	})
	return all, err
}

func removeGroup(dir string) error {
	all, err := folders(dir)
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(all) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

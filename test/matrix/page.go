package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

//go:embed page.md.tmpl
var pageSource string

// page is what the template reads.
type page struct {
	Columns      []column // the newest version first
	NotRun       []string // versions that no suite was run on
	Capabilities []capability
}

func (p page) write(w io.Writer) error {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// Verdicts are on one capability, by version.
func (p page) Verdicts(c capability) []string {
	var verdicts []string
	for _, on := range p.Columns {
		verdicts = append(verdicts, c.verdict(on))
	}
	return verdicts
}

// Lacking are the capabilities that some version has not, and the versions.
func (p page) Lacking() []lacking {
	var found []lacking
	for _, c := range p.Capabilities {
		var versions []string
		for _, on := range p.Columns {
			if c.verdict(on) == lacks {
				versions = append(versions, on.release.Minor())
			}
		}
		if len(versions) > 0 {
			found = append(found, lacking{Name: c.Name, Versions: strings.Join(versions, ", "), Instead: c.Instead})
		}
	}
	return found
}

type lacking struct{ Name, Versions, Instead string }

// difference is a test that did not come out the same everywhere.
type difference struct {
	Test     string
	Outcomes []string // by version
}

// Differences are the tests that passed on some versions and did not run, or ended otherwise, on
// others. Of a test that did so its subtests are left out.
func (p page) Differences() []difference {
	var found []difference
	for _, s := range suites {
		names := map[string]bool{}
		for _, c := range p.Columns {
			for name := range c.suites[s.name] {
				names[name] = true
			}
		}
		delete(names, "")
		for _, name := range sorted(names) {
			d := difference{Test: s.name + ": " + name}
			for _, c := range p.Columns {
				d.Outcomes = append(d.Outcomes, c.outcome(d.Test))
			}
			above := func(other difference) bool { return strings.HasPrefix(d.Test, other.Test+"/") }
			if len(slices.Compact(slices.Clone(d.Outcomes))) > 1 && !slices.ContainsFunc(found, above) {
				found = append(found, d)
			}
		}
	}
	return found
}

func sorted(names map[string]bool) []string {
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Skipped are the tests that were skipped somewhere.
func (p page) Skipped() []string {
	var found []string
	for _, c := range p.Columns {
		for _, s := range suites {
			for name, outcome := range c.suites[s.name] {
				if outcome == "skip" {
					found = append(found, fmt.Sprintf("%s: %s on %s", s.name, name, c.release.Minor()))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// fault is an error unless every suite passed and every capability was shown or said to be lacking.
func (p page) fault() error {
	var errs []error
	for _, version := range p.NotRun {
		errs = append(errs, fmt.Errorf("version %s was not run", version))
	}
	for _, c := range p.Columns {
		for _, s := range suites {
			if outcome := c.suites[s.name][""]; outcome != "pass" {
				errs = append(errs, fmt.Errorf("%s on Kubernetes %s: %s, %s", s.name, c.release.Minor(), outcome, c.suites[s.name].count()))
			}
		}
		for _, capability := range p.Capabilities {
			if verdict := capability.verdict(c); verdict != holds && verdict != lacks {
				errs = append(errs, fmt.Errorf("on Kubernetes %s, %q: %s", c.release.Minor(), capability.Name, verdict))
			}
		}
	}
	return errors.Join(errs...)
}

// What ran besides Kubernetes.
func (page) Etcd() string { return strings.TrimPrefix(controlplane.EtcdVersion, "v") }
func (page) Helm() string { return strings.TrimPrefix(controlplane.HelmVersion, "v") }
func (page) Go() string   { return strings.TrimPrefix(runtime.Version(), "go") }
func (page) Kubectl() string {
	return strings.TrimPrefix(controlplane.Newest().Version, "v")
}

// Suites are their names.
func (page) Suites() []string {
	var names []string
	for _, s := range suites {
		names = append(names, s.name)
	}
	return names
}

// Command matrix runs the suites that need a real API server on every version of Kubernetes that
// package controlplane can build, and writes what holds where as a page. Nothing on the page is
// written by hand but the names: a capability holds on a version if the tests that show it ran
// there and passed.
//
// The output of each suite is kept, so that one version can be run again and the page written from
// all of them:
//
//	go run ./test/matrix -only 1.35
//
// Start reading at run; capabilities.go is the table.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

func main() {
	var o options
	flag.StringVar(&o.page, "o", "docs/compatibility.md", "the file to write")
	flag.StringVar(&o.logs, "logs", "bin/matrix", "the folder that keeps the output of the suites")
	flag.StringVar(&o.only, "only", "", "run these versions only, as 1.36,1.35; \"none\" runs nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type options struct{ page, logs, only string }

// run writes the page also when tests fail or a version was not run, and then returns an error.
func run(ctx context.Context, o options) error {
	releases, err := o.chosen()
	if err != nil {
		return err
	}
	for _, release := range releases {
		if err := runSuites(ctx, release, o.logs); err != nil {
			return err
		}
	}
	p := page{Capabilities: capabilities}
	for _, release := range controlplane.Releases() {
		c, err := readColumn(release, o.logs)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.NotRun = append(p.NotRun, strings.TrimPrefix(release.Version, "v"))
		case err != nil:
			return err
		default:
			p.Columns = append(p.Columns, c)
		}
	}
	var text bytes.Buffer
	if err := errors.Join(p.write(&text), os.WriteFile(o.page, text.Bytes(), 0o644)); err != nil {
		return err
	}
	for _, c := range p.Columns {
		fmt.Printf("Kubernetes %s: %s\n", c.Version(), c.Total())
	}
	return p.fault()
}

// chosen returns the versions to run.
func (o options) chosen() ([]controlplane.Release, error) {
	all := controlplane.Releases()
	switch o.only {
	case "":
		return all, nil
	case "none":
		return nil, nil
	}
	var releases []controlplane.Release
	for _, minor := range strings.Split(o.only, ",") {
		i := slices.IndexFunc(all, func(r controlplane.Release) bool { return r.Minor() == minor })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no version %q", o.only, minor)
		}
		releases = append(releases, all[i])
	}
	return releases, nil
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	pods, clients, replicas int
	out                     string
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("reliability", flag.ContinueOnError)
	f.StringVar(&o.out, "o", "docs/reliability.md", "the page to write")
	f.IntVar(&o.pods, "pods", 20000, "how many pods are created at least, in equal shares while each thing happens")
	f.IntVar(&o.clients, "clients", 16, "how many clients create them")
	f.IntVar(&o.replicas, "replicas", 2, "how many replicas there are")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	for name, n := range map[string]int{"pods": o.pods, "clients": o.clients, "replicas": o.replicas - 1} {
		if n < 1 {
			return nil, fmt.Errorf("-%s: want more", name)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	r, err := measure(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	page, table, err := render(r)
	if err != nil {
		return err
	}
	fmt.Print(table)
	if faults := r.faults(); len(faults) > 0 {
		return fmt.Errorf("%s is left as it was: %w", o.out, errors.Join(faults...))
	}
	return os.WriteFile(o.out, page, 0o644)
}

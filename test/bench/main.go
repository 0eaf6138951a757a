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

	"github.com/runtimeclass-router/runtimeclass-router/test/bench/page"
	"github.com/runtimeclass-router/runtimeclass-router/test/bench/results"
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

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	o.progress = os.Stderr
	var r *results.Results
	if o.render != "" {
		r, err = results.Read(o.render)
	} else {
		r, err = measure(ctx, o)
	}
	if o.keep != "" && r != nil {
		err = errors.Join(err, r.Write(o.keep)) // of a run that failed, as far as it came
	}
	if err != nil {
		return err
	}
	goals, err := page.Write(o.out, r)
	if err != nil {
		return err
	}
	fmt.Print(goals)
	return nil
}

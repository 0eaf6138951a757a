// Command baseline is a webhook to measure the product against. It does nothing, or one
// fixed job: the namespace's trust label decides the runtime class, its node selector
// and its toleration. Either is served by plain net/http or by controller-runtime, as
// somebody would write it by hand.
//
// It ends when its standard input does, so that it never outlives whoever started it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// options say where to serve, and where the cluster is.
type options struct {
	port       int
	certDir    string // holds tls.crt and tls.key
	kubeconfig string // for the job, which looks namespaces up
}

// kinds are the webhooks by name.
var kinds = map[string]func(context.Context, options) error{
	"noop":                   plainNoop,
	"noop-controllerruntime": controllerNoop,
	"job":                    plainJob,
	"job-controllerruntime":  controllerJob,
}

func main() {
	ctrllog.SetLogger(logr.Discard())
	var o options
	flags := flag.NewFlagSet("baseline", flag.ExitOnError) // controller-runtime has put one of its own into the other
	kind := flags.String("kind", "noop", "what to serve: noop, noop-controllerruntime, job, job-controllerruntime")
	flags.IntVar(&o.port, "port", 9443, "the port on 127.0.0.1")
	flags.StringVar(&o.certDir, "cert-dir", "", "the folder with tls.crt and tls.key")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the cluster, for the job")
	_ = flags.Parse(os.Args[1:]) // ends the process at a fault
	if err := run(*kind, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kind string, o options) error {
	serve, ok := kinds[kind]
	if !ok {
		return fmt.Errorf("-kind: there is no %q", kind)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
		cancel()
	}()
	err := serve(ctx, o)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// counter counts the reviews that a handler was sent.
type counter struct {
	http.Handler
	served atomic.Int64
}

// ServeHTTP implements http.Handler.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.served.Add(1)
	c.Handler.ServeHTTP(w, r)
}

// report answers with how many there were.
func (c *counter) report(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, c.served.Load())
}

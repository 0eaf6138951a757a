package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubeconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
)

func newCleanupCommand() *cobra.Command {
	timeout := 30 * time.Second
	cmd := &cobra.Command{
		Use:   "cleanup NAME",
		Short: "Remove what of a release could refuse pods",
		Long: `Remove the webhook configurations called NAME, and the admission policies and their
bindings called NAME-backstop, NAME-custody and NAME-fallback, in that order. NAME is the
release's full name, which all its objects have. What is gone already is no error. The
chart runs this before it removes anything; to run it by hand, before you delete a
release's namespace say, takes the rights to delete these.`,
		Example: `  runtimeclass-router cleanup runtimeclass-router`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := kubeconfig.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			clients, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("make a client: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return cleanup(ctx, clients, args[0], cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long it may take in all")
	return cmd
}

// deletion removes one object by name.
type deletion struct {
	kind, name string
	remove     func(context.Context, string, metav1.DeleteOptions) error
}

// deletions are in the order in which a half-broken release does least harm: first what
// calls the webhook, then what binds a policy, then the policies.
func deletions(clients kubernetes.Interface, name string) []deletion {
	api := clients.AdmissionregistrationV1()
	all := []deletion{
		{"MutatingWebhookConfiguration", name, api.MutatingWebhookConfigurations().Delete},
		{"ValidatingWebhookConfiguration", name, api.ValidatingWebhookConfigurations().Delete},
	}
	backstop, custody, fallback := name+"-backstop", name+"-custody", name+"-fallback"
	return append(all,
		deletion{"ValidatingAdmissionPolicyBinding", backstop, api.ValidatingAdmissionPolicyBindings().Delete},
		deletion{"ValidatingAdmissionPolicyBinding", custody, api.ValidatingAdmissionPolicyBindings().Delete},
		deletion{"MutatingAdmissionPolicyBinding", fallback, api.MutatingAdmissionPolicyBindings().Delete},
		deletion{"ValidatingAdmissionPolicy", backstop, api.ValidatingAdmissionPolicies().Delete},
		deletion{"ValidatingAdmissionPolicy", custody, api.ValidatingAdmissionPolicies().Delete},
		deletion{"MutatingAdmissionPolicy", fallback, api.MutatingAdmissionPolicies().Delete},
	)
}

// cleanup goes on after an error, so that as much as possible is removed. A kind that the
// cluster does not serve is not found either.
func cleanup(ctx context.Context, clients kubernetes.Interface, name string, out io.Writer) error {
	var errs []error
	for _, d := range deletions(clients, name) {
		switch err := d.remove(ctx, d.name, metav1.DeleteOptions{}); {
		case err == nil:
			fmt.Fprintf(out, "deleted %s %s\n", d.kind, d.name)
		case !apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("delete %s %s: %w", d.kind, d.name, err))
		}
	}
	return errors.Join(errs...)
}

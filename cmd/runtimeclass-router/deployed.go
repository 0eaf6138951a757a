package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// releaseOptions name the installation whose policy is asked.
type releaseOptions struct{ name, namespace string }

func (o *releaseOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.name, "release", "runtimeclass-router", "the full name of the release, which the names of its objects begin with")
	cmd.Flags().StringVar(&o.namespace, "release-namespace", "runtimeclass-router", "the namespace of the release")
}

// configMap is where the chart keeps the configuration file.
func (o *releaseOptions) configMap() string { return o.name + "-config" }

// answering is the policy that answers, and how it is known.
type answering struct {
	source  *policies.Source
	modules policies.Modules
	config  *config
	// said is whose policy it is, in words; notes are what of it is not known here.
	said  string
	notes []string
}

// answering is the policy as it comes, or that of the flags.
func (o *policyOptions) answering(policy string) (*answering, error) {
	c, err := loadConfig(o.configFile)
	if err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	a := &answering{config: c, said: "the shipped policy"}
	if policy != "" {
		a.said = "--policy " + policy
	}
	if o.configFile != "" {
		a.said += ", with --config " + o.configFile
	}
	if policy == "" && o.configFile != "" {
		a.source = &policies.Source{}
		a.modules, a.notes, err = c.modules()
		return a, err
	}
	if a.source, a.modules, err = readPolicy(policy, o.mode); err != nil {
		return nil, errors.Join(located(a.source, err)...)
	}
	return a, nil
}

// located are an error's faults, each with its place.
func located(source *policies.Source, err error) []error {
	var errs []error
	for _, p := range source.Problems(err) {
		errs = append(errs, errors.New(p.String()))
	}
	return errs
}

// deployed reads the configuration and the policy ConfigMaps of the release, as the product
// does. An error that [unreadable] knows says that the user may not, or that there are none.
func (o *releaseOptions) deployed(ctx context.Context, client kubernetes.Interface) (*answering, error) {
	stored, err := client.CoreV1().ConfigMaps(o.namespace).Get(ctx, o.configMap(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get configmap %s: %w", o.configMap(), err)
	}
	c, err := loadConfig("")
	if err == nil {
		err = c.lay([]byte(stored.Data["config.yaml"]))
	}
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("configmap %s/%s: %w", o.namespace, o.configMap(), err)
	}
	a := &answering{config: c, source: &policies.Source{}, said: fmt.Sprintf("that of release %s in namespace %s", o.name, o.namespace)}
	if c.Policies.Directory != "" {
		a.notes = append(a.notes, "the directory of policies.directory is the product's and is not read here: give what is in it as --policy and --config")
	}
	if c.Policies.Bundle.URL != "" {
		a.notes = append(a.notes, "the bundle of the release is not fetched here: give what is in it as --policy and --config")
	}
	given := policies.Modules{}
	if namespace := c.Policies.ConfigMaps.Namespace; namespace != "" {
		if given, err = policyConfigMaps(ctx, client, namespace); err != nil {
			return nil, err
		}
	}
	a.source.Modules = given
	switch {
	case !c.Policies.replace():
		a.modules, err = policies.Shipped().Extend(given)
	case len(given) == 0:
		err = errors.New("policies.mode is replace, and no ConfigMap holds a policy: give it as --policy and --config")
	default:
		a.modules = given
	}
	return a, err
}

// policyConfigMaps reads the files of the labelled ConfigMaps.
func policyConfigMaps(ctx context.Context, client kubernetes.Interface, namespace string) (policies.Modules, error) {
	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: catalog.LabelPolicy + "=" + catalog.PolicyLabelValue})
	if err != nil {
		return nil, fmt.Errorf("list configmaps of namespace %s: %w", namespace, err)
	}
	modules := policies.Modules{}
	for i := range list.Items {
		files, err := policies.ConfigMapModules(&list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("policy configmap %s: %w", list.Items[i].Name, err)
		}
		maps.Copy(modules, files)
	}
	return modules, nil
}

// lacking says why something was not read: for want of a right, or since it is not there.
func lacking(err error, right string) string {
	if apierrors.IsNotFound(err) {
		return "is not there"
	}
	return "could not be read (it takes: " + right + ")"
}

// unreadable reports whether an error says that an object may not be read, or is not there.
func unreadable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// ours are the labels or annotations of the product.
func ours(all map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, catalog.Prefix) {
			found[key] = value
		}
	}
	return found
}

// pairs writes labels as KEY=VALUE, sorted.
func pairs(labels map[string]string) string {
	var written []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		written = append(written, key+"="+labels[key])
	}
	return strings.Join(written, ", ")
}

package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

const (
	// product is the source of results, and who manages the reports.
	product = "runtimeclass-router"
	// reportName is that of the report of each namespace, and of the manager of its fields.
	reportName = product + "-audit"
	managedBy  = "app.kubernetes.io/managed-by"
)

// reportAPIs are the two APIs for reports of policies, the newer first. Of what is written
// both have the same fields: apis/openreports.io/v1alpha1/report_types.go of
// openreports/reports-api, and wgpolicyk8s.io_policyreports.yaml of
// kubernetes-sigs/wg-policy-prototypes, whose severities are high, medium and low.
var reportAPIs = [...]struct {
	resource schema.GroupVersionResource
	kind     string
}{
	{schema.GroupVersionResource{Group: "openreports.io", Version: "v1alpha1", Resource: "reports"}, "Report"},
	{schema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}, "PolicyReport"},
}

// ErrNoReports is of a cluster that serves no API for reports of policies.
var ErrNoReports = errors.New("the cluster serves no reports of policies: it has neither the CRD reports.openreports.io (v1alpha1) nor policyreports.wgpolicyk8s.io (v1alpha2)")

// Reports writes what was found into a cluster: one report for each namespace with
// findings.
type Reports struct {
	objects  dynamic.NamespaceableResourceInterface
	names    metadata.Getter
	resource schema.GroupVersionResource
	kind     string
}

// NewReports finds out which API the cluster serves.
func NewReports(ctx context.Context, config *rest.Config) (*Reports, error) {
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	for _, api := range reportAPIs {
		list, err := served.ServerResourcesForGroupVersionWithContext(ctx, api.resource.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask for %s: %w", api.resource.GroupVersion(), err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == api.resource.Resource }) {
			return &Reports{objects: objects.Resource(api.resource), names: names.Resource(api.resource), resource: api.resource, kind: api.kind}, nil
		}
	}
	return nil, ErrNoReports
}

// Write writes the reports and returns their names, and removes those of namespaces that
// have no finding any more: only in one namespace, if it is given. One that cannot be
// written keeps no other from being.
func (r *Reports) Write(ctx context.Context, report *Report, only string) (written []string, err error) {
	byNamespace := map[string][]Counted{}
	for i := range report.Findings {
		of := report.Findings[i].Namespace
		byNamespace[of] = append(byNamespace[of], report.Findings[i])
	}
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		object := r.object(namespace, byNamespace[namespace], report.passed[namespace])
		_, err := r.objects.Namespace(namespace).Apply(ctx, reportName, object, metav1.ApplyOptions{FieldManager: reportName, Force: true})
		if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			continue // it goes, with its pods
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("write %s %s/%s: %w", r.resource.Resource, namespace, reportName, err))
			continue
		}
		written = append(written, fmt.Sprintf("%s/%s/%s", r.resource.GroupResource(), namespace, reportName))
	}
	return written, errors.Join(append(errs, r.removeOthers(ctx, byNamespace, only))...)
}

// removeOthers removes the reports of other namespaces than those.
func (r *Reports) removeOthers(ctx context.Context, byNamespace map[string][]Counted, only string) error {
	var errs []error
	ours := metav1.ListOptions{LabelSelector: managedBy + "=" + product}
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.names.Namespace(only).List(ctx, options)
	})
	err := list.EachListItem(ctx, ours, func(object runtime.Object) error {
		m, ok := object.(*metav1.PartialObjectMetadata)
		if !ok || m.Name != reportName || byNamespace[m.Namespace] != nil {
			return nil
		}
		if err := r.names.Namespace(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove %s %s/%s: %w", r.resource.Resource, m.Namespace, m.Name, err))
		}
		return nil
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("list %s: %w", r.resource.Resource, err))
	}
	return errors.Join(errs...)
}

// maxResults bounds a report: with names of the greatest length it is below the 1.5 MiB
// that etcd takes of a request.
const maxResults = 300

// object is a namespace's report. Nothing in it tells when it was written: one that says the
// same is the same, and the API server leaves it alone.
func (r *Reports) object(namespace string, findings []Counted, passed int) *unstructured.Unstructured {
	summary := map[string]int{"pass": passed}
	results := []any{}
	unlisted := 0
	for i := range findings {
		f := &findings[i]
		summary[f.result()] += f.Pods
		if len(results) < maxResults {
			results = append(results, f.asResult())
		} else {
			unlisted++
		}
	}
	if unlisted > 0 {
		results = append(results, map[string]any{
			"source": product, "policy": product, "rule": "unlisted", "result": "skip",
			"message": fmt.Sprintf("%d more findings: runtimeclass-router audit -n %s lists them", unlisted, namespace),
		})
	}
	counts := map[string]any{}
	for _, result := range []string{"pass", "fail", "warn", "error", "skip"} {
		counts[result] = int64(summary[result])
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"scope":   map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": namespace},
		"summary": counts,
		"results": results,
	}}
	object.SetGroupVersionKind(r.resource.GroupVersion().WithKind(r.kind))
	object.SetNamespace(namespace)
	object.SetName(reportName)
	object.SetLabels(map[string]string{managedBy: product})
	return object
}

// result is that of a finding in a report: what is not enforced fails nothing.
func (c *Counted) result() string {
	result := gravities[c.Kind.rank()].result
	if result == "fail" && !c.Enforced {
		return "warn"
	}
	return result
}

func (c *Counted) asResult() map[string]any {
	pods := []any{}
	for _, name := range c.Names {
		pods = append(pods, map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": c.Namespace, "name": name})
	}
	return map[string]any{
		"source": product, "policy": product, "rule": string(c.Kind), "category": "Isolation",
		"severity": c.Severity, "result": c.result(), "scored": true,
		"resources": pods, "message": c.Reason,
		"properties": map[string]any{
			"owner": c.Owner, "pods": strconv.Itoa(c.Pods), "mode": string(c.Mode), "runtimeClassName": c.RuntimeClassName,
			"isolation": string(c.Isolation), "trust": c.Trust, "floor": string(c.Floor), "today": c.Today,
		},
	}
}

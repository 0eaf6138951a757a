package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// parseSetLabels returns labels by namespace; nil stands for a label that is removed.
func parseSetLabels(given []string) (map[string]map[string]*string, error) {
	labels := map[string]map[string]*string{}
	var errs []error
	for _, text := range given {
		namespace, label, ok := strings.Cut(text, ":")
		key, value, set := strings.Cut(label, "=")
		key, removed := strings.CutSuffix(key, "-")
		faults := slices.Concat(validation.IsDNS1123Label(namespace), validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
		if !ok || set == removed || len(faults) > 0 {
			errs = append(errs, fmt.Errorf("--set-label %q: write NAMESPACE:KEY=VALUE, or NAMESPACE:KEY- to remove it", text))
			continue
		}
		if labels[namespace] == nil {
			labels[namespace] = map[string]*string{}
		}
		if labels[namespace][key] = &value; removed {
			labels[namespace][key] = nil
		}
	}
	return labels, errors.Join(errs...)
}

// relabel returns those namespaces whose labels are changed, and leaves the given ones alone.
func relabel(namespaces map[string]*catalog.Namespace, labels map[string]map[string]*string) map[string]*catalog.Namespace {
	changed := map[string]*catalog.Namespace{}
	for name, set := range labels {
		namespace := catalog.Namespace{Name: name, Labels: map[string]string{}}
		if old, ok := namespaces[name]; ok {
			namespace = *old
			if namespace.Labels = maps.Clone(old.Labels); namespace.Labels == nil {
				namespace.Labels = map[string]string{}
			}
		}
		for key, value := range set {
			if value == nil {
				delete(namespace.Labels, key)
			} else {
				namespace.Labels[key] = *value
			}
		}
		changed[name] = &namespace
	}
	return changed
}

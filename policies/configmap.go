package policies

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// ConfigMapModules returns the files of a ConfigMap that carries policy, named
// CONFIGMAP/KEY. A key that is no .rego file is an error, because it would otherwise be
// left out in silence: a `.reg` in which a denial stands. The error joins all faults.
func ConfigMapModules(c *corev1.ConfigMap) (Modules, error) {
	modules := Modules{}
	errs := []error{checkConfigMapSize(c)}
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		if path.Ext(key) != ".rego" {
			errs = append(errs, badKey(c, key, "does not end in .rego"))
			continue
		}
		modules[path.Join(c.Name, key)] = c.Data[key]
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		errs = append(errs, badKey(c, key, "is binary"))
	}
	return modules, errors.Join(errs...)
}

func badKey(c *corev1.ConfigMap, key, fault string) error {
	return &LocatedError{
		File: path.Join(c.Name, key), Line: 1, Err: fmt.Errorf("key %q of ConfigMap %s %s", key, c.Name, fault),
		Hint: "rename the key, or take the label " + catalog.LabelPolicy + " from the ConfigMap",
	}
}

// checkConfigMapSize refuses what the API server would.
func checkConfigMapSize(c *corev1.ConfigMap) error {
	total := 0
	for _, value := range c.Data {
		total += len(value)
	}
	for _, value := range c.BinaryData {
		total += len(value)
	}
	if total <= MaxBytes {
		return nil
	}
	return &LocatedError{
		Err:  fmt.Errorf("ConfigMap %s has %d bytes of data, and %d is the most: the API server stores no more in one", c.Name, total, MaxBytes),
		Hint: "move lists to the configuration",
	}
}

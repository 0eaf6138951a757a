package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
)

//go:embed mutatingadmissionpolicies.yaml
var policyManifest []byte

// applyPolicies installs the variants that are MutatingAdmissionPolicies.
func (h *harness) applyPolicies(ctx context.Context) error {
	manifest := filepath.Join(h.scratch, "mutatingadmissionpolicies.yaml")
	if err := os.WriteFile(manifest, policyManifest, 0o600); err != nil {
		return err
	}
	return h.Apply(ctx, manifest)
}

package catalog

// Prefix starts every label and annotation key of this project.
const Prefix = "runtimeclass-router.io/"

// Labels and annotations that the product reads or writes.
const (
	// LabelTrust on a Namespace or a Pod names a trust level. The namespace's is
	// the ceiling: a pod may lower itself and never raise itself.
	LabelTrust = Prefix + "trust"
	// LabelProfile on a Namespace or a Pod names a workload profile; the pod's
	// wins.
	LabelProfile = Prefix + "workload-profile"
	// LabelMode on a Namespace is enforce, warn or audit.
	LabelMode = Prefix + "mode"

	// LabelIsolation on a RuntimeClass may lower any handler's isolation, and
	// raise only that of a handler that is not known.
	LabelIsolation = Prefix + "isolation"
	// LabelHostDevices on a RuntimeClass is "withheld" where the node's runtime
	// does not pass host devices to privileged containers (containerd's
	// privileged_without_host_devices).
	LabelHostDevices = Prefix + "host-devices"
	// LabelAvailability on a RuntimeClass is "autoscaled" where an empty pool is
	// usable all the same, because it scales from zero.
	LabelAvailability = Prefix + "availability"

	// LabelPolicy on a ConfigMap in the release's namespace is PolicyLabelValue where
	// its keys are files of the policy.
	LabelPolicy = Prefix + "policy"

	// AnnotationTrust, AnnotationReason and AnnotationPolicyRevision are written
	// on a Pod with every patch, so that `kubectl describe pod` answers "why?".
	// They are never read as evidence: whoever creates a pod can write them.
	AnnotationTrust          = Prefix + "trust"
	AnnotationReason         = Prefix + "reason"
	AnnotationPolicyRevision = Prefix + "policy-revision"

	// AnnotationFallback on a Pod names the class that the in-process fallback gave it
	// while the webhook was not there. The webhook takes it away again, and chooses as
	// if the pod had asked for none: whoever forges it hands the choice over.
	AnnotationFallback = Prefix + "fallback"
)

// Values of [LabelPolicy]. Others, "false" say, leave a ConfigMap out.
const (
	// PolicyLabelValue: the files are of the policy in force.
	PolicyLabelValue = "true"
	// ShadowLabelValue: the files are of the policy that is evaluated beside it.
	ShadowLabelValue = "shadow"
)

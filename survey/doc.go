// Package survey looks at pods that are there already, in manifests or in a cluster, and
// says what a policy makes of them: what `policy diff`, `audit`, `why` and `doctor` have
// in common with each other, and the scan of a running webhook with them.
//
// [Manifests] and [Pods] are where pods come from, one at a time; [Each] hands them out
// to as many goroutines as there are processors. [Recreate] makes of a running pod the
// one that its owner would create next, [Read] the input of the decision on it, and
// [Side.Verdict] says what happens to it, and [Side.Explain] how that comes about.
//
// It may import catalog, policies, webhook and a Kubernetes client; only audit, doctor,
// shadow and cmd import it.
package survey

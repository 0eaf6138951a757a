// Package policies evaluates the Rego policies that decide how a pod runs.
//
// An [Engine] holds the policy and the data it reads in an immutable [Snapshot],
// swapped as a whole, so a decision never mixes two policies or two catalogs.
// Start reading at [Engine.Load] (what a policy must pass before it is in force)
// and [Snapshot.Decide] (one evaluation). The shipped policy lies in rego/, the
// schemas that it is compiled against in schemas/.
//
// The package may import OPA, the Kubernetes API types and package catalog. It
// knows no Kubernetes client, no server, and no clock: only what loads a policy takes
// the time (budget.go, watchdog.go).
package policies

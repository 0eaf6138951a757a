// Package cluster sends the shapes of package conformance through a real API server, and
// has the tests of faults that only show there. The report uses it without the product,
// too.
//
// Start reading at [Create]. The package builds on package stack; its tests start one
// stack for all.
package cluster

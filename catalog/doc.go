// Package catalog says what a cluster can run: its RuntimeClasses with their
// handler, isolation, overhead and scheduling, and whether a pool of nodes
// stands behind each.
//
// [Build] is a pure function from Kubernetes objects to a [Catalog]; start
// reading there. Two sources feed it: the informers of the subpackage informers
// (a live cluster) and [ReadManifests] (files). Both give the same view, so the
// command line and the webhook cannot disagree.
//
// The package may import the Kubernetes API types. It imports neither a
// Kubernetes client (that is the subpackage's part) nor OPA.
package catalog

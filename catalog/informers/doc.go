// Package informers keeps a catalog in step with a live cluster.
//
// It watches RuntimeClasses, Nodes and the metadata of Namespaces, and never pods:
// objects are stripped to what is read before they are stored. Start reading at
// [Informers.Run]. [Read] is the same view taken once, for the command line.
//
// The package may import a Kubernetes client; it imports no OPA.
package informers

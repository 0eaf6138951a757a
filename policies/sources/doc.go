// Package sources brings policy files in: those that the product ships, a directory,
// the labelled ConfigMaps of a namespace, and a bundle from a server or a registry.
//
// Each kind is a [Source] in a file of its own. It runs for as long as the process
// does and hands over what it has, now and whenever that changes; what it cannot read
// is an error that leaves the files before it where they are. A [Set] keeps the last
// delivery of each, joins them into one policy, and tells how each fares. It puts
// nothing in force: who runs it loads what [Set.Policy] returns.
//
// Start reading at [Source] and [Set]. The package may import OPA, client-go and
// package policies. It knows no server and no manager.
package sources

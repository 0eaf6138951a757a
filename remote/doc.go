// Package remote says how a server of somebody else's is reached: with credentials and a CA
// from files, and without either ever going where it should not.
//
// Policies are fetched so, and decision logs sent. Start reading at [Access]. The package
// imports the standard library and Kubernetes' words for faults of a configuration.
package remote

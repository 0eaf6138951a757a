// Package webhook answers the API server's admission reviews.
//
// Start reading at route.go: decode, decide, guard and patch, one after the other,
// for one pod. [Router.Route] is pure but for the policy engine it asks, so the
// command line, the tests and the server share it. handler.go puts it behind
// admission reviews and respond.go turns what came out into an answer.
//
// The package may import packages policies and catalog, and controller-runtime's
// admission types. Nothing in it trusts a policy with safety: see guard.go.
package webhook

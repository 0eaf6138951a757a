// Package integration tests the product on a real control plane: what the API server
// stores, what the scheduler binds, and what users and auditors are told.
//
// One stack serves all tests; TestMain starts and ends it. A test works in namespaces
// of its own and, where it changes nodes or RuntimeClasses, on a pool of its own, so
// that tests run in parallel. Those that read the webhook's counters do not.
//
// Start reading at main_test.go. The package builds on package stack.
package integration

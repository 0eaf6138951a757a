// Package architecture holds the test that keeps the import arrows between this
// repository's packages: who may know whom, and which packages stay free of OPA or of
// a Kubernetes client. The table in imports_test.go is the place to start.
//
// The package has no code. Its test imports the standard library only and asks the go
// command, so that it sees what a build sees.
package architecture

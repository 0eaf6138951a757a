// Package stack runs the product on a real control plane, for integration tests and
// `make demo`: the chart's objects installed by helm, the webhook a local process
// that the API server calls by URL, or several behind a [Service], with the chart's
// configuration and the rights of the chart's ServiceAccount and no more.
//
// Start reading at [Start]. The package builds on package controlplane.
package stack

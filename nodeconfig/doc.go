// Package nodeconfig writes what makes a node offer the handlers of a catalog: the
// drop-in file of containerd or CRI-O, with comments for whoever installs it.
//
// It is text out of handlers: [Handlers] reads them off a catalog, [Containerd], [CRIO]
// and [Podman] write. Nothing is read from a node, and nothing is installed. Start
// reading at runtimes.go, which says what each runtime needs; the templates beside the Go
// files are the files as they come out.
//
// The package may import catalog and Kubernetes' validation. It imports neither OPA nor a
// Kubernetes client.
package nodeconfig

// Package nodeconfig gives what package nodeconfig of the product writes to a real
// containerd, built from its Go module, and reads back what that makes of it. CRI-O is no Go
// module that can be built here: its file is held to the documented keys, beside the
// product's package.
//
// The package holds tests only.
package nodeconfig

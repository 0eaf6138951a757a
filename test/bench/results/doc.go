// Package results are what a run of test/bench measured, and the arithmetic on it. It can
// be written to a file and read again, so that a page can be made anew without measuring.
//
// Start reading at [Results]. The package imports package controlplane, for the versions of its
// programs, and nothing else of this repository.
package results

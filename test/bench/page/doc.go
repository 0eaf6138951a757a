// Package page makes docs/performance.md, and its plots, of the results of test/bench.
//
// Start reading at [Write]. The package imports package results and a library for plots.
package page

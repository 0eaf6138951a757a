// Package benchmark measures what a runtime costs on a live cluster: it starts short
// pods of several RuntimeClasses, takes the time that each needs, and compares.
//
// [NewPlan] says which pods there will be, in which order; [Plan.Pod] is each of them.
// A [Runner] creates them, watches them and takes them away again; [NewReport] makes
// percentiles and ratios of what was measured, and [Report.WriteSVG] draws them. Only
// the Runner knows a client and a clock.
//
// The package imports client-go and nothing of this module: the classes to compare are
// its caller's choice. Start reading at [NewPlan].
package benchmark

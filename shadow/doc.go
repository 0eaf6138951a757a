// Package shadow evaluates a second policy beside the one in force, over the same pods, and
// says where it would decide otherwise. Nothing that it answers is ever enforced.
//
// Start reading at [Shadow], which is told of decisions as a [webhook.Observer] and holds
// them against its own policy in one goroutine, at a bounded rate. What it cannot take at
// once is dropped, and counted: the decision that is enforced never waits for it. Verdicts and
// changes are those of `policy diff`, of package survey.
//
// The package may import survey, policies and their sources, catalog and webhook.
package shadow

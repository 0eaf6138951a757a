// Command bench measures what admission costs: through a real API server and straight to
// the webhook, the product beside what would do a part of its job. It writes
// docs/performance.md, with plots beside it.
//
// Variants take turns in shuffled order within each round, and what is compared are
// ratios within a round: a machine that is slow for a while is slow for all. Every answer
// is checked. Nothing here says how fast something must be: the page compares with goals,
// and the test of this package looks at answers and at the page's shape alone.
//
//	results   what was measured, and the arithmetic on it
//	page      the page and its plots
//	baseline  the webhooks to compare with, each a process of its own
//
// Start reading at [measure], which goes through the stages.
package main

// Command reliability creates pods through a real API server without a pause, while
// certificates are rotated, replicas are replaced and killed, the API server is away and
// policy changes, and counts what became of each. It writes docs/reliability.md, and ends
// with status 1 if a pod was refused that should not have been, or came out as it should
// not.
//
// What is done to the product, and which failures that excuses, is a table in
// disturbance.go; how a failure is told from another, cause.go. Start reading at [measure].
package main

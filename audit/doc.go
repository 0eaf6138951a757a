// Package audit finds the running pods that are not as today's policy would have them,
// or that run below the floor of their trust.
//
// [Auditor.Look] holds one pod against the policy, and kind.go has the kinds of finding.
// [Tally] counts findings by owner, [Reports] writes them where a cluster serves an API
// for reports of policies. The command line reads pods by package survey and ends there.
// [Scanner] is the same in the background of a running webhook, by the replica that holds
// a lease: scan.go is where to start. [Evictor] has pods made anew by their owners.
//
// It may import survey, webhook, policies, catalog and a Kubernetes client; only cmd
// imports it.
package audit

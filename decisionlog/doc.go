// Package decisionlog says what was decided, to those who were not answered: whoever reads
// logs, by a line of JSON; a service that takes OPA's decision logs, by uploads; and the
// developer whose ReplicaSet gets no pods, by an Event on it.
//
// Start reading at [Log], which is the handlers' observer, and at [Entry], which is all that
// leaves the process of a decision: nothing of a pod but its name and its owner. A decision
// never waits for a log: what cannot be taken at once is dropped, and counted.
//
// The package may import packages webhook, policies and remote, and client-go's words for
// Events. It makes no client.
package decisionlog

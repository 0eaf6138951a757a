// Package doctor looks for what stands in the way of enforcing, before it bites: pools
// without nodes, pods that would be denied, guards that are missing, and what is about to
// expire. What has drifted already is the business of the command audit.
//
// [Checks] is a table: a check has a name, what it needs to read, and a function over the
// [Cluster] that was read. There is one file a group of checks. A check that could not read
// what it needs is unknown, and never fine.
//
// It may import survey, registration, backstop, policies, catalog and client-go; only cmd
// imports it. It writes nothing, neither to the cluster nor to the terminal. Start reading
// at [Run].
package doctor

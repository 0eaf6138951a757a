// Package audit tests on a real control plane what looks at running pods: the command,
// the reports that it writes, and the scan of a running webhook with its evictions.
//
// The tests build on each other, on one stack of their own: a scan that evicts would
// disturb any others. Start reading at audit_test.go. By default they look at few pods;
//
//	go test ./test/audit -run TestAudit/drift -pods 10000 -v
//
// looks at as many and says how long that takes, and how much memory.
package audit

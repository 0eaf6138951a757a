package chart

import (
	"fmt"
	"os"
	"testing"
)

// replicaVariable makes this binary a replica of the webhook; see replica_test.go.
const replicaVariable = "CHART_TEST_REPLICA"

func TestMain(m *testing.M) {
	if raw := os.Getenv(replicaVariable); raw != "" {
		if err := runReplica(raw, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

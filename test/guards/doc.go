// Package guards tests, on a real API server, what keeps pods in their sandbox when the
// webhook does not answer or somebody works around it: the chart's admission policies,
// their parameters, and the validating webhook.
//
// The product runs as package stack starts it, with failurePolicy Ignore, so that the
// policies are all there is while the webhook is killed. Tests change what all of them
// share and put it back; none is parallel. The package holds tests only.
//
// Start reading at down_test.go.
package guards

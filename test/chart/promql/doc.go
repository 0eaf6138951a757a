// Package promql checks what the chart gives to Prometheus and Grafana with the code of
// Prometheus and its operator: that objects decode strictly, that expressions parse and
// use metrics and labels that the product has, and that each alert fires when it should
// and not when it should not.
//
// It is run by TestMonitoring of test/chart, which keeps testdata/ in step: monitoring.yaml
// is what the chart renders, metrics.json is what the product registers.
package promql

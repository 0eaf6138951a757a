// Package chart tests the Helm chart, as rendered and on a real API server, and with
// it what needs both: the self-managed certificate under the chart's own RBAC.
//
// helm, etcd and kube-apiserver come from package controlplane, which builds them
// from source; build them ahead of time, as its documentation says, or the first run
// takes minutes. There is no kubelet: a replica of the webhook is this test's binary
// started once more, with a stand-in for the mount of the Secret.
//
// The package holds tests only. They may import anything but cmd.
package chart

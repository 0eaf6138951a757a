// Package node runs the product on a cluster with real nodes: two kubelets with a containerd each,
// crun and runc on the one, gVisor on the other, kube-proxy, a control plane of package controlplane,
// and the webhook as pods behind a Service, installed by Helm. What other packages of test/ show up to
// the scheduler is shown here in containers that run.
//
// The cluster lives in mount, network, PID, IPC and UTS namespaces of its own, and so do the proofs:
// the test binary starts itself again, once for each stage of [Stage], and leaves nothing behind but
// its report. It needs Linux, root and the packages that [Requirements] names; without them it fails.
//
// Run it by `make test-node`. The package imports package controlplane and nothing of the product: the
// product is the image that it builds.
//
// Start reading at [Run], which is the stage on the host; cluster.go is what is started inside.
package node

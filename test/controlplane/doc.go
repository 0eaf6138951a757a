// Package controlplane runs a real Kubernetes control plane on the loopback interface: etcd,
// kube-apiserver, kube-scheduler and kube-controller-manager, with kubectl and helm to drive it.
// Tests and "make demo" use it where a fake client would prove nothing.
//
// The programs are not downloaded but built from Go modules, which the Go command verifies like any
// other dependency. The nested modules under modules/ pin them, so that this repository's go.mod
// does not carry their requirements. The first build takes minutes; its result is kept in the user's
// cache folder and shared by every clone of the same versions. To build ahead of time, out of reach
// of go test's timeout:
//
//	go run ./test/controlplane/build
//
// The environment variable KUBERNETES_VERSION, "1.36" say, chooses an older control plane: see
// [Releases]. Without it the newest runs. kubectl, helm and etcd are the same for all.
//
// There is no kubelet: a Node comes from [CreateNode], the scheduler binds pods to it, and there
// they stay Pending.
//
// The package runs on Unix. It may import controller-runtime, client-go and the standard library,
// and nothing of this repository, so that every package's tests can use it.
//
// Start reading at [Start]; [Build] is how the programs come about, guard.go is why none of them
// outlives the test.
package controlplane

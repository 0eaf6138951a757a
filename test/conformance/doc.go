// Package conformance holds the shapes of pods that public projects make, and what may
// become of each in an untrusted and in a trusted namespace: one file a shape, below
// shapes/, over the cluster of shapes/cluster.yaml. Its tests ask the product without a
// server; package cluster below it asks through a real API server, and command report
// writes docs/conformance.md, with what other ways of admission make of the same pods.
//
// Start reading at [Shapes], and at [Verdict] for what is expected. To add a shape, add a
// file. The package may import catalog; its tests, policies and webhook, too.
//
// # Faults
//
// Each fault below is a public bug report that a webhook which routes pods to
// RuntimeClasses meets, and each has a test that fails where the product has it. Names
// with a slash are tests of package cluster.
//
//	fault, and where it was reported                                 tests
//	---------------------------------------------------------------  -----
//	Silently off: a selector that matches no pod                     cluster/TestSilentOffByASelector
//	  kubernetes-sigs/windows-testing#553                            TestSilentOffIsSeenOnTheFinalObject
//	Routed to a place that cannot exist                              TestRoutingToAPlaceThatCannotExist
//	  kata-containers/tests#3550                                     TestPlaceThatNoNodeIsToday
//	A DaemonSet's controller does not see the selector               TestDaemonSetThatCannotSeeTheSelector
//	  kubernetes/kubernetes#61886, #51788, #111590                   cluster/TestDenialReadsThroughAController
//	Unknown fields are dropped                                       TestUnknownFieldsAreNotDropped
//	  aws/amazon-eks-pod-identity-webhook#208, doitintl/kube-secrets-init#53,
//	  kubernetes-sigs/windows-testing#576, kubernetes/website#47465
//	A sandbox that cannot run what another webhook injects           TestSandboxThatCannotRunAnInjectedContainer
//	  istio/istio#57678, #59353, google/gvisor#170
//	Bootstrap deadlock                                               cluster/TestBootstrapDeadlock
//	  kyverno/kyverno#16177, cozystack/cozystack#3125,               cluster/TestWebhookComesBackByItself
//	  confidential-containers/cloud-api-adaptor#305                  TestPodsOfKubeSystem
//	Mutation on UPDATE                                               TestMutationOnUpdate
//	  open-policy-agent/gatekeeper#4121                              cluster/TestOnlyCreationsAreMutated
//	                                                                 cluster/TestFinalizerOfARoutedPodCanBeRemoved
//	A class exists whose handler some nodes lack                     TestClassThatSomeNodesLack
//	  NVIDIA/gpu-operator#477
//	An impossible combination is admitted                            TestImpossibleCombinationsAreDenied
//	  kata-containers/kata-containers#2912, #9157, kata-containers/runtime#499
//	The object is read where the request says it                     TestNamespaceOfTheRequest
//	  kubernetes/kubernetes#76680, #113952, dapr/dapr#6938,          TestReviews
//	  kubernetes-sigs/controller-runtime#1991, kata-containers/tests#1260
//	Live nodes decide whether a class is there                       TestScaleFromZero
//	  kubernetes/autoscaler#3943, aws/karpenter-provider-aws#4392    TestNotebookPlatformWithoutKVM
//	A denial that cannot be read through a controller                TestDenialIsReadableThroughAController
//	  tektoncd/pipeline#3657                                         cluster/TestDenialReadsThroughAController
//	Served before the caches are synced                              TestServeBeforeSync
//	  elastic/cloud-on-k8s#5025, kubefleet-dev/kubefleet#367, knative/pkg#1180
//	  (and under load: TestReplacementUnderLoadFailsNoPod of package integration)
//	Fails at the kubelet, in a loop, and not at admission            TestFailsAtAdmissionAndNotAtTheKubelet
//	  kubernetes/kubernetes#72593, #99502, #22298
package conformance

package main

import (
	"slices"
	"strings"
)

// capability is something that a version has or has not, by the tests that show it, each as
// "suite: name".
type capability struct {
	Name string
	// Shown are tests that all pass where it holds.
	Shown []string
	// Lacking are tests that run in their stead where Kubernetes does not have what it takes: they
	// hold the product to saying so. Instead tells what there is then.
	Lacking []string
	Instead string
}

var capabilities = []capability{
	{Name: "A pod gets class, overhead, selector and tolerations", Shown: []string{
		"integration: TestPodWithoutClassGetsAllOfTheClass",
		"integration: TestReplacedClassLeavesNothingBehind",
		"integration: TestAskedClassIsKeptWithoutAPatch",
	}},
	{Name: "The same beside other webhooks, called anew", Shown: []string{
		"integration: TestSecondRoundAfterAHarmlessChange",
		"integration: TestAnswerThatChangesInTheSecondRoundIsComplete",
	}},
	{Name: "Final check of the pod", Shown: []string{
		"integration: TestClassThatAnotherWebhookSetsLastIsRefused",
		"guards: TestLaterWebhook",
	}},
	{Name: "Trust and mode by label", Shown: []string{
		"integration: TestLabelsOfANamespaceTakeEffect",
		"integration: TestPodLowersItselfAndNeverRaisesItself",
		"integration: TestUnlabelledNamespaceIsOnlyWarned",
	}},
	{Name: "Pods of every kind of workload", Shown: []string{
		"integration: TestPodsOfControllers",
	}},
	{Name: "The scheduler binds a pod to its pool", Shown: []string{
		"integration: TestPodLandsOnThePoolOfItsClass",
		"integration: TestReplacedPodLandsOnThePoolOfItsNewClass",
	}},
	{Name: "Pools by the runtime handlers that nodes report", Shown: []string{
		"integration: TestPoolThatGoesDownIsPassedOver/without_the_handler",
		"integration: TestPodOfAPoolWithoutAReadyNodeWaitsWithAWarning",
	}},
	{Name: "A broken policy is refused at `kubectl apply`", Shown: []string{
		"integration: TestPolicyConfigMapIsCheckedWhenItIsApplied",
	}},
	{Name: "Replicas are replaced under load, and no pod fails", Shown: []string{
		"integration: TestReplacementUnderLoadFailsNoPod",
	}},
	{Name: "Backstop", Shown: []string{
		"guards: TestBackstopWithoutTheFallback",
		"guards: TestBackstopRefusesWhatOpensTheHost",
		"guards: TestBackstopAgreesWithTheWebhook",
		"guards: TestPoliciesTypeCheck",
	}},
	{Name: "Backstop: debug containers, annotations of a running pod", Shown: []string{
		"guards: TestBackstopJudgesUpdates",
	}},
	{Name: "Custody", Shown: []string{
		"guards: TestCustody",
		"guards: TestCustodyOfSubresources",
		"guards: TestCustodyWithTheWebhookDown",
		"guards: TestGrant",
	}},
	{
		Name: "Fallback, and with it `webhook.failurePolicy: Ignore`",
		Shown: []string{
			"guards: TestFallback/on",
			"chart: TestFallbackByVersion/on",
		},
		Lacking: []string{
			"guards: TestFallback/off",
			"chart: TestFallbackByVersion/off",
		},
		Instead: "`fallback.enabled: auto` leaves it out, and the notes of the release say so; `true`, and " +
			"`webhook.failurePolicy: Ignore`, are refused by the chart, naming Kubernetes 1.36. So it is where MutatingAdmissionPolicy " +
			"is served in v1beta1, too. Pods are refused while the webhook does not answer; where somebody edits the failure policy to Ignore " +
			"by hand, as the tests of the other guards do there, the backstop refuses an untrusted pod that names no class.",
	},
	{Name: "`webhook.failurePolicy: Fail`", Shown: []string{
		"guards: TestFailurePolicyFail",
		"chart: TestArming/Fail_is_in_force",
		"chart: TestArming/Fail_is_still_in_force",
	}},
	{Name: "The chart is valid with every set of values tried", Shown: []string{
		"chart: TestCluster/every_variant_is_valid",
	}},
	{Name: "`helm install`", Shown: []string{
		"chart: TestCluster/install",
		"chart: TestArming/a_failed_install_blocks_nobody",
	}},
	{Name: "`helm upgrade` and `helm rollback`", Shown: []string{
		"chart: TestCluster/upgrade_keeps_the_certificate",
		"chart: TestArming/upgrade",
		"chart: TestArming/rollback",
		"guards: TestUpgradeKeepsTheParameters",
	}},
	{Name: "`helm uninstall`, and again from the start", Shown: []string{
		"chart: TestCluster/uninstall",
		"chart: TestCluster/reinstall",
		"chart: TestCluster/guards_read_the_parameters_anew",
		"chart: TestArming/uninstall_deadlock",
	}},
	{Name: "Rights and Pod Security `restricted`", Shown: []string{
		"chart: TestCluster/permissions",
		"chart: TestCluster/a_pod_is_restricted",
	}},
	{Name: "Certificates are made and renewed", Shown: []string{
		"chart: TestCluster/certificates",
	}},
	{Name: "No difference for GitOps controllers", Shown: []string{
		"chart: TestCluster/Argo_CD_sees_no_difference",
		"chart: TestArming/no_diff_under_Argo_CD",
	}},
}

// Verdicts on a capability.
const (
	holds    = "yes"
	lacks    = "no"
	fails    = "FAILS"
	notShown = "NOT SHOWN"
)

func (c capability) verdict(on column) string {
	count := func(tests []string, outcome string) int {
		return len(slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return on.outcome(test) != outcome }))
	}
	switch {
	case count(c.Shown, "fail")+count(c.Lacking, "fail") > 0:
		return fails
	case count(c.Shown, "pass") == len(c.Shown):
		return holds
	case len(c.Lacking) > 0 && count(c.Lacking, "pass") == len(c.Lacking) && count(c.Shown, "") == len(c.Shown):
		return lacks
	}
	return notShown
}

// Tests are those that show it either way, for the page.
func (c capability) Tests() string {
	names := slices.Concat(c.Shown, c.Lacking)
	for i, name := range names {
		_, test, _ := strings.Cut(name, ": ")
		names[i] = "`" + test + "`"
	}
	return strings.Join(names, ", ")
}

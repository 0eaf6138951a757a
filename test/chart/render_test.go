package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// everything sets every value to something other than its default.
const everything = `
preset: kata-deploy
global: {imageRegistry: mirror.example, imagePullSecrets: [{name: pull}]}
image: {registry: registry.example, repository: platform/router, tag: v9, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", pullPolicy: Always}
imagePullSecrets: [{name: pull}, {name: other}]
replicas: 3
serviceAccount: {annotations: {a: b}}
webhook:
  port: 9443
  failurePolicy: Ignore
  timeoutSeconds: 10
  drainSeconds: 30
  annotations: {c: d}
  matchConditions: [{name: no-probes, expression: "object.metadata.?labels['probe'].orValue('') != 'true'"}]
exemptNamespaces: [storage, kube-system, "42"]
backstop: {enabled: true}
fallback: {enabled: true, runtimeClassName: kata-fc}
custody: {enabled: true, contact: "the \\ \"platform\" team's channel: {{ # }}"}
router: {unlabelledNamespaces: {trust: untrusted, mode: enforce}}
policies:
  mode: extend
  files:
    custom.rego: |
      package router.custom
    custom_test.rego: "package router.custom_test\n"
  bundle:
    url: oci://registry.example/platform/policies:v1
    pollInterval: 5m
    keysSecret: policy-keys
    algorithm: ES256
    credentialsSecret: registry
    caConfigMap: registry-ca
log: {format: text, level: 1}
resources: {limits: {memory: 1Gi}}
priorityClassName: ""
podLabels: {team: platform}
podAnnotations: {a: b}
nodeSelector: {pool: system}
tolerations: [{key: CriticalAddonsOnly, operator: Exists}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
podDisruptionBudget: {create: false}
priorityClassQuota: {create: true, pods: 9}
openshift: true
hostNetwork: true
dnsPolicy: Default
networkPolicy:
  enabled: true
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  egress: [{ports: [{port: 6443, protocol: TCP}]}]
health: {port: 9081}
metrics:
  port: 9080
  monitor: {kind: ServiceMonitor, labels: {release: prometheus}, interval: 1m}
  rules: {enabled: true, labels: {release: prometheus}, disabled: [RuntimeClassRouterUndone]}
  dashboard: {enabled: true, labels: {grafana_dashboard: "yes"}, annotations: {folder: platform}}
runtimeClasses: {create: true}
extraObjects:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: "{{ .Release.Name }}-extra", labels: {app.kubernetes.io/instance: "{{ .Release.Name }}"}}
  data: {a: b}
- |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: {{ .Release.Name }}-text, labels: {app.kubernetes.io/instance: {{ .Release.Name }}}}
  data: {a: b}
`

// variants are the values that every rendered object is checked with.
var variants = map[string]string{
	"defaults":   "",
	"everything": everything,
	"renamed":    "{nameOverride: router, fullnameOverride: a-name-that-is-longer-than-what-a-dns-label-leaves-room-for-after-a-suffix}",
	"replaced":   `{policies: {mode: replace, files: {router.rego: "package router\n"}}}`,
	"unsigned":   `{policies: {mode: replace, bundle: {url: "https://policies.example/bundle.tar.gz", unsigned: true}}}`,
	"url":        `{replicas: 0, webhook: {url: "https://127.0.0.1:9443/mutate-pod", caBundle: Q0E=}}`,
	"unguarded":  "{backstop: {enabled: false}, fallback: {enabled: false}, custody: {enabled: false}}",
	"ignored":    "{webhook: {failurePolicy: Ignore}, custody: {enabled: false}}",
	"audited":    "{audit: {interval: 1h, podsPerSecond: 20, reports: true, evictionsPerMinute: 6}, exemptNamespaces: [cni]}",
	"scanned":    "{audit: {interval: 10m}}",
	"autoscaled": "{autoscaling: {enabled: true, minReplicas: 3}, metrics: {monitor: {kind: PodMonitor}}}",
	"networked":  "{networkPolicy: {enabled: true}, priorityClassName: system-node-critical, priorityClassQuota: {create: true}}",
	"named":      "{preset: aks-pod-sandboxing, runtimeClasses: {create: true}, image: {registry: registry.example}}",
	"issued":     "{certs: {mode: certManager}}",
	"given":      "{certs: {mode: secret, secretName: mine, caBundle: Q0E=}, cleanup: {enabled: false}}",
	"told":       `{decisionLog: {sample: {allowed: 0.01}, upload: {url: "https://logs.example/logs", labels: {cluster: a}, credentialsSecret: logs, caConfigMap: logs}}}`,
	"untold":     "{decisionLog: {events: false, sample: {denied: 0}}}",
	"one class":  `{runtimeClasses: {create: true, list: [{name: sandbox, handler: runsc, labels: {a: b}, annotations: {c: d}}]}}`,
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := template(t, values)
			if err != nil {
				t.Fatal(err)
			}
			again, err := template(t, values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("two renders differ (-first +again):\n%s", diff)
			}
			for _, object := range decode(t, first) {
				checkObject(t, object)
			}
		})
	}
}

func checkObject(t *testing.T, object client.Object) {
	t.Helper()
	if object.GetLabels()["app.kubernetes.io/instance"] != release {
		t.Errorf("%T %s has labels %v, want the release's", object, object.GetName(), object.GetLabels())
	}
	if got := object.GetNamespace(); got != "" && got != namespace {
		t.Errorf("%T %s is in namespace %q", object, object.GetName(), got)
	}
	switch object := object.(type) {
	case *corev1.Secret:
		if len(object.Data)+len(object.StringData) > 0 {
			t.Errorf("secret %s is rendered with data", object.Name)
		}
	case *corev1.ConfigMap:
		if guards := strings.HasSuffix(object.Name, "-guards"); guards == (len(object.Data) > 0) {
			t.Errorf("config map %s is rendered with %d keys", object.Name, len(object.Data))
		}
	case *corev1.Service:
		if len(object.Name) > 63 {
			t.Errorf("service name %s is too long", object.Name)
		}
	case *appsv1.Deployment:
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		if template := object.Spec.Template.Labels; !selector.Matches(labels.Set(template)) {
			t.Errorf("selector %s does not match the pods' labels %v", selector, template)
		}
		if object.Spec.Template.Spec.RuntimeClassName != nil {
			t.Error("the webhook's own pods name a RuntimeClass")
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, want string }{
		"failure policy":            {"{webhook: {failurePolicy: fail}}", "/webhook/failurePolicy"},
		"policy file with a slash":  {`{policies: {files: {a/b.rego: ""}}}`, "policies.files"},
		"policy file that is none":  {`{policies: {files: {a.yaml: ""}}}`, "policies.files"},
		"replaced by nothing":       {"{policies: {mode: replace}}", "policies.files"},
		"policy mode":               {"{policies: {mode: append}}", "/policies/mode"},
		"bundle unverified":         {`{policies: {bundle: {url: "https://a/b"}}}`, "policies.bundle.keysSecret"},
		"bundle both":               {`{policies: {bundle: {url: "https://a/b", keysSecret: a, unsigned: true}}}`, "policies.bundle.unsigned"},
		"bundle from nowhere":       {`{policies: {bundle: {keysSecret: a}}}`, "policies.bundle.url"},
		"class without a handler":   {"{runtimeClasses: {create: true, list: [{name: a}]}}", "missing property 'handler'"},
		"class without a name":      {"{runtimeClasses: {create: true, list: [{handler: a}]}}", "missing property 'name'"},
		"deadline longer than that": {"{webhook: {timeoutSeconds: 0}}", "/webhook/timeoutSeconds"},
		"ignored, no backstop":      {"{webhook: {failurePolicy: Ignore}, backstop: {enabled: false}}", "webhook.failurePolicy: Ignore"},
		"ignored, no fallback":      {"{webhook: {failurePolicy: Ignore}, fallback: {enabled: false}}", "webhook.failurePolicy: Ignore"},
		"fallback neither nor":      {"{fallback: {enabled: maybe}}", "/fallback/enabled"},
		"certificate unnamed":       {"{certs: {mode: secret, caBundle: Q0E=}}", "certs.secretName"},
		"certificate unverified":    {"{certs: {mode: secret, secretName: a}}", "certs.caBundle"},
		"certificate of nobody":     {"{certs: {secretName: a}}", "certs.secretName"},
		"issuer of nobody":          {"{certs: {issuerRef: {name: a}}}", "certs.issuerRef"},
		"contact of two lines":      {`{custody: {contact: "a\nb"}}`, "/custody/contact"},
		"alert that is none":        {"{metrics: {rules: {enabled: true, disabled: [Slow]}}}", "metrics.rules.disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := template(t, test.values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestEverything holds the values that have no other test to what they change.
func TestEverything(t *testing.T) {
	t.Parallel()
	objects := render(t, everything)
	deployment := only[*appsv1.Deployment](t, objects)
	pod := deployment.Spec.Template.Spec
	if got := *deployment.Spec.Replicas; got != 3 {
		t.Errorf("replicas %d, want 3", got)
	}
	if got, want := pod.Containers[0].Image, "mirror.example/platform/router@sha256:"+strings.Repeat("0", 64); got != want {
		t.Errorf("image %s, want %s: a digest wins, and so does the global registry", got, want)
	}
	if pod.PriorityClassName != "" {
		t.Errorf("priority class %q, want none", pod.PriorityClassName)
	}
	if got := pod.TopologySpreadConstraints; len(got) != 1 || got[0].TopologyKey != corev1.LabelTopologyZone {
		t.Errorf("topology spread constraints %v, want those that are given", got)
	}
	if got := pod.Containers[0].Ports[0].ContainerPort; got != 9443 {
		t.Errorf("port %d, want 9443", got)
	}
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "pull"}, {Name: "other"}}, pod.ImagePullSecrets); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
	// OpenShift assigns them.
	if c := pod.SecurityContext; c.RunAsUser != nil || c.RunAsGroup != nil || c.FSGroup != nil || !*c.RunAsNonRoot {
		t.Errorf("security context %v, want no user and no group", c)
	}
	if pod.DNSPolicy != corev1.DNSDefault {
		t.Errorf("DNS policy %s, want the one that is given", pod.DNSPolicy)
	}
	for _, hook := range only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks {
		if len(hook.MatchConditions) != 1 {
			t.Errorf("match conditions %v", hook.MatchConditions)
		}
	}
	// The pod drains, and then answers what it accepted last.
	if got := *pod.TerminationGracePeriodSeconds; got <= 30+5 {
		t.Errorf("grace period %d s, too short for a drain of 30 s", got)
	}
	for _, object := range objects {
		if _, ok := object.(*policyv1.PodDisruptionBudget); ok {
			t.Error("rendered a PodDisruptionBudget")
		}
	}
}

func TestConfigChangeReplacesPods(t *testing.T) {
	t.Parallel()
	checksum := func(values string) string {
		return only[*appsv1.Deployment](t, render(t, values)).Spec.Template.Annotations["checksum/config"]
	}
	before := checksum("")
	if before == "" {
		t.Fatal("no checksum")
	}
	if again := checksum("{replicas: 5}"); again != before {
		t.Error("the checksum changes with what is not configuration")
	}
	for values, want := range map[string]bool{
		"{log: {level: 1}}":            true,
		"{webhook: {drainSeconds: 9}}": true,
		`{policies: {bundle: {url: "https://a/b", unsigned: true}}}`: true,
		// These are taken over while the product runs.
		"{router: {gpuRuntimes: [kata-qemu]}}":                             false,
		`{policies: {files: {a.rego: "package a\n"}}}`:                     false,
		`{policies: {mode: replace, files: {a.rego: "package router\n"}}}`: false,
	} {
		if got := checksum(values) != before; got != want {
			t.Errorf("the checksum changes with %s: %t, want %t", values, got, want)
		}
	}
}

func TestWebhookSelects(t *testing.T) {
	t.Parallel()
	configuration := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, render(t, "{exemptNamespaces: [storage]}"))
	if len(configuration.Webhooks) != 2 {
		t.Fatalf("%d webhooks, want 2", len(configuration.Webhooks))
	}
	if idle := configuration.Webhooks[1]; len(idle.MatchConditions) != 1 || idle.MatchConditions[0].Expression != "false" {
		t.Errorf("%s asks twice about a pod: %v", idle.Name, idle.MatchConditions)
	}
	webhook := configuration.Webhooks[0]
	namespaces, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"default": true, "kube-public": true, "tenant": true,
		"kube-system": false, "kube-node-lease": false, namespace: false, "storage": false,
	} {
		// A tenant may set other labels.
		set := labels.Set{corev1.LabelMetadataName: name, "name": "kube-system", "runtimeclass-router.io/mode": "audit"}
		if got := namespaces.Matches(set); got != want {
			t.Errorf("namespace %s: selected %t, want %t", name, got, want)
		}
	}
	objects, err := metav1.LabelSelectorAsSelector(webhook.ObjectSelector)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []labels.Set{nil, {"app": "web"}, {"runtimeclass-router.io/trust": "trusted"}} {
		if !objects.Matches(set) {
			t.Errorf("a pod with labels %v is not selected", set)
		}
	}
	if len(webhook.Rules) > 0 {
		t.Error("rules are rendered: an installation that fails would block whom they select")
	}
}

// TestSkipTrusted: together the two webhooks of either configuration are asked about each
// pod once, or not at all: where it is as trusted as can be in a namespace that is.
func TestSkipTrusted(t *testing.T) {
	t.Parallel()
	const key = "runtimeclass-router.io/trust"
	for values, most := range map[string]string{
		"{webhook: {skipTrusted: true}}": "trusted",
		"{webhook: {skipTrusted: true}, router: {levels: [{name: ours}, {name: theirs, floor: user-space-kernel}]}}": "ours",
	} {
		var selections [][2]*metav1.LabelSelector
		objects := render(t, values)
		for _, hook := range only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks {
			selections = append(selections, [2]*metav1.LabelSelector{hook.NamespaceSelector, hook.ObjectSelector})
		}
		for _, hook := range only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects).Webhooks {
			if strings.HasSuffix(hook.Name, "-final.runtimeclass-router.io") {
				selections = append(selections, [2]*metav1.LabelSelector{hook.NamespaceSelector, hook.ObjectSelector})
			}
		}
		if len(selections) != 4 {
			t.Fatalf("%s: %d webhooks, want 4", values, len(selections))
		}
		levels := []string{"", "trusted", "ours", "untrusted", "nonsense"}
		for i := 0; i < len(selections); i += 2 {
			for _, namespace := range levels {
				for _, pod := range levels {
					asked := 0
					for _, pair := range selections[i : i+2] {
						if selects(t, pair[0], key, namespace) && selects(t, pair[1], key, pod) {
							asked++
						}
					}
					want := 1
					if namespace == most && (pod == "" || pod == most) {
						want = 0
					}
					if asked != want {
						t.Errorf("%s: pod %q in namespace %q: asked %d times, want %d", values, pod, namespace, asked, want)
					}
				}
			}
		}
	}
	const sandboxed = "{webhook: {skipTrusted: true}, router: {levels: [{name: ours, floor: guest-kernel}]}}"
	if _, err := templateFor(t, sandboxed, latest); err == nil || !strings.Contains(err.Error(), "webhook.skipTrusted: true: level ours of router.levels takes a sandbox") {
		t.Errorf("a level that takes a sandbox is skipped: %v", err)
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, key, value string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	set := labels.Set{corev1.LabelMetadataName: "tenant"}
	if value != "" {
		set[key] = value
	}
	return s.Matches(set)
}

func TestRuntimeClasses(t *testing.T) {
	t.Parallel()
	var got []string
	for _, object := range render(t, "{runtimeClasses: {create: true}}") {
		class, ok := object.(*nodev1.RuntimeClass)
		if !ok {
			continue
		}
		got = append(got, class.Name)
		pool := class.Scheduling.NodeSelector["runtimeclass-router.io/pool"]
		tolerated := slices.ContainsFunc(class.Scheduling.Tolerations, func(toleration corev1.Toleration) bool {
			return toleration.Key == "runtimeclass-router.io/pool" && toleration.Value == pool
		})
		if pool != class.Name || !tolerated {
			t.Errorf("class %s is scheduled by %+v", class.Name, class.Scheduling)
		}
		if isolated := class.Name != "crun"; isolated != (class.Overhead != nil) {
			t.Errorf("class %s has overhead %v", class.Name, class.Overhead)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"crun", "gvisor", "kata-clh", "kata-fc", "kata-qemu"}, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

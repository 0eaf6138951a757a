package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
	"github.com/runtimeclass-router/runtimeclass-router/doctor"
	"github.com/runtimeclass-router/runtimeclass-router/registration"
	"github.com/runtimeclass-router/runtimeclass-router/test/controlplane"
)

// patient is a real API server with the chart installed and armed, and no webhook behind it.
type patient struct {
	*controlplane.ControlPlane
	clients *kubernetes.Clientset
	hooks   *registration.Registration
}

const (
	patientRelease = "runtimeclass-router"
	guardsLevels   = "guards.runtimeclass-router.io/levels"
)

func newPatient(t *testing.T) *patient {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // or controller-runtime, which starts the control plane, complains
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	quiet := rest.CopyConfig(cp.Config)
	quiet.WarningHandler = rest.NoWarnings{}
	p := &patient{ControlPlane: cp}
	if p.clients, err = kubernetes.NewForConfig(quiet); err != nil {
		t.Fatal(err)
	}
	p.hooks = registration.New(p.clients.AdmissionregistrationV1(), patientRelease)
	p.populate(t)
	p.must(t, "helm install "+patientRelease+" charts/runtimeclass-router --namespace "+patientRelease+" --create-namespace")
	p.write(t, time.Now().AddDate(1, 0, 0), time.Now().AddDate(1, 0, 0))
	p.must(t, "kubectl annotate serviceaccount "+patientRelease+"-guards --namespace "+patientRelease+" "+guardsLevels+"=trusted")
	p.arm(t)
	return p
}

// populate makes the nodes and classes of the example, and pods, which need no webhook yet.
func (p *patient) populate(t *testing.T) {
	t.Helper()
	admin, err := client.New(p.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &catalog.Manifests{}
	if err := m.Add("example", exampleCluster); err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Documents {
		if node, ok := d.Object.(*corev1.Node); ok {
			err = controlplane.CreateNode(t.Context(), admin, node)
		} else {
			err = admin.Create(t.Context(), d.Object.(client.Object))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, pod := range map[string]corev1.PodSpec{
		"shop":  {},
		"infra": {HostNetwork: true},
	} {
		labels := map[string]string{catalog.LabelTrust: "untrusted"}
		if name == "infra" {
			labels[catalog.LabelTrust] = "trusted"
		}
		if _, err := p.clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod.Containers = []corev1.Container{{Name: "c", Image: "registry.example.com/i:1"}}
		if _, err := p.clients.CoreV1().Pods(name).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: pod}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *patient) arm(t *testing.T) {
	t.Helper()
	hooks, err := p.hooks.Hooks(t.Context())
	if err == nil {
		err = p.hooks.Arm(t.Context(), hooks)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write puts a CA and a certificate of it in place, as the product does, with their ends.
func (p *patient) write(t *testing.T, caEnd, leafEnd time.Time) {
	t.Helper()
	ca, leaf := certificatePair(t, caEnd, leafEnd)
	hooks, err := p.hooks.Hooks(t.Context())
	if err == nil {
		err = p.hooks.Inject(t.Context(), hooks, ca)
	}
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{"tls.crt": leaf, "ca.crt": ca, "ca.key": []byte("k")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.clients.CoreV1().Secrets(patientRelease).Patch(t.Context(), patientRelease+"-tls", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func certificatePair(t *testing.T, caEnd, leafEnd time.Time) (ca, leaf []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: caEnd,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	child := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: parent.NotBefore, NotAfter: leafEnd, DNSNames: []string{patientRelease + "." + patientRelease + ".svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	encode := func(of *x509.Certificate) []byte {
		der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return encode(parent), encode(child)
}

// must runs a command as it is printed.
func (p *patient) must(t *testing.T, command string) {
	t.Helper()
	command = strings.ReplaceAll(command, "charts/runtimeclass-router", "../../charts/runtimeclass-router")
	args := strings.Fields(command)
	run := p.Kubectl
	if args[0] == "helm" {
		run = p.Helm
	}
	if _, err := run(t.Context(), args[1:]...); err != nil {
		t.Fatalf("$ %s\n%v", command, err)
	}
}

// examine runs the doctor, and returns what is not well.
func (p *patient) examine(t *testing.T, kubeconfig string, args ...string) ([]doctor.Finding, int) {
	t.Helper()
	out, errOut, err := run(t, "", append([]string{"doctor", "--kubeconfig", kubeconfig, "-o", "json"}, args...)...)
	var findings []doctor.Finding
	if decodeErr := json.Unmarshal([]byte(out), &findings); decodeErr != nil {
		t.Fatalf("%v: %v\n%s%s", err, decodeErr, out, errOut)
	}
	return slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.OK }), status(err)
}

// said is a finding without its words.
func said(f doctor.Finding) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.Check, f.Object))
}

func allSaid(findings []doctor.Finding) []string {
	list := []string{}
	for _, f := range findings {
		list = append(list, said(f))
	}
	slices.Sort(list)
	return list
}

// TestDoctor examines a real API server.
func TestDoctor(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	t.Run("faults", p.faults)
	t.Run("rights", p.rights)
	t.Run("skipTrusted", p.skipped)
}

// faults are planted one by one, and each is found with its severity. After its command, or
// what the product does by itself, it is gone.
func (p *patient) faults(t *testing.T) {
	if findings, code := p.examine(t, p.KubeconfigPath); len(findings) > 0 || code != 0 {
		t.Fatalf("before any fault: status %d: %+v", code, findings)
	}
	configuration := "configuration/" + patientRelease
	for _, fault := range []struct {
		name  string
		plant string             // a command
		by    func(*testing.T)   // or a function
		want  map[string]string  // words of each finding's message by what is said
		mend  func(t *testing.T) // nil: the printed commands do
		code  int
	}{
		{name: "a cordoned node", plant: "kubectl cordon kata-fc-1", code: 2,
			want: map[string]string{"warning pools runtimeclass/kata-fc": "its node kata-fc-1 is cordoned"}},
		{name: "a node without its label", plant: "kubectl label node kata-fc-1 example.com/runtime-", code: 2,
			want: map[string]string{"warning pools runtimeclass/kata-fc": "node kata-fc-1 offers handler kata-fc, and lacks labels"}},
		{name: "a class without nodes", plant: "kubectl create --filename testdata/doctor/class.yaml", code: 2,
			want: map[string]string{
				"warning pools runtimeclass/mystery":  "no node offers handler mystery",
				"note isolation runtimeclass/mystery": "handler mystery is not known",
			}},
		{name: "a label that is ignored", plant: "kubectl label runtimeclass crun runtimeclass-router.io/isolation=guest-kernel", code: 2,
			want: map[string]string{"warning isolation runtimeclass/crun": "is ignored"}},
		{name: "infrastructure that is not labelled", plant: "kubectl label namespace infra runtimeclass-router.io/trust-", code: 2,
			want: map[string]string{
				"warning denied infra/Pod/agent":     "would be denied (pods: 1): no sandbox here can run this pod (spec.hostNetwork)",
				"warning namespaces namespace/infra": "1 of 1 pods would be denied (Pod/agent)",
			}},
		{name: "infrastructure in an enforced namespace", plant: "kubectl label namespace infra --overwrite runtimeclass-router.io/trust=untrusted", code: 3,
			want: map[string]string{"error denied infra/Pod/agent": "its next pod is denied, today already"},
			mend: func(t *testing.T) {
				p.must(t, "kubectl label namespace infra --overwrite runtimeclass-router.io/trust=trusted")
			}},
		{name: "an exempt namespace that is labelled", plant: "kubectl label namespace kube-system runtimeclass-router.io/trust=untrusted", code: 2,
			want: map[string]string{"warning exempt namespace/kube-system": "nobody looks at its pods"}},
		{name: "no backstop", plant: "kubectl delete validatingadmissionpolicybinding " + patientRelease + "-backstop", code: 2,
			want: map[string]string{"warning backstop validatingadmissionpolicybinding/runtimeclass-router-backstop": "is not there, so the policy judges nothing"}},
		{name: "a backstop that audits", code: 2,
			plant: `kubectl patch validatingadmissionpolicybinding ` + patientRelease + `-backstop --type=merge --patch={"spec":{"validationActions":["Audit"]}}`,
			want:  map[string]string{"warning backstop validatingadmissionpolicybinding/runtimeclass-router-backstop": "does not deny (validationActions [Audit])"}},
		{name: "no custody", plant: "kubectl delete validatingadmissionpolicy " + patientRelease + "-custody", code: 2,
			want: map[string]string{"warning custody validatingadmissionpolicy/runtimeclass-router-custody": "whoever may label a namespace may trust it"}},
		{name: "no fallback", plant: "kubectl delete mutatingadmissionpolicybinding " + patientRelease + "-fallback", code: 0,
			want: map[string]string{"note fallback mutatingadmissionpolicy/runtimeclass-router-fallback": "pods that need a sandbox are refused"}},
		{name: "failurePolicy Ignore, with guards", plant: `kubectl patch mutatingwebhookconfiguration ` + patientRelease + ` --type=json --patch=[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`, code: 0,
			want: map[string]string{"note failure-policy mutatingwebhook" + configuration: "stand in"},
			mend: func(t *testing.T) {
				p.must(t, "kubectl delete mutatingadmissionpolicybinding "+patientRelease+"-fallback")
				findings, code := p.examine(t, p.KubeconfigPath)
				if got := allSaid(findings); code != 3 || !slices.Contains(got, "error failure-policy mutatingwebhook"+configuration) ||
					!slices.Contains(got, "error fallback mutatingadmissionpolicy/runtimeclass-router-fallback") {
					t.Errorf("without them: status %d: %v", code, got)
				}
				for _, f := range findings {
					p.must(t, f.Next)
				}
			}},
		{name: "not armed", plant: `kubectl patch mutatingwebhookconfiguration ` + patientRelease + ` --type=json --patch=[{"op":"remove","path":"/webhooks/0/rules"}]`, code: 3,
			want: map[string]string{"error webhooks mutatingwebhook" + configuration: "is not armed, so the API server asks nobody"}, mend: p.arm},
		{name: "no webhook configuration", plant: "kubectl delete validatingwebhookconfiguration " + patientRelease, code: 3,
			want: map[string]string{"error webhooks validatingwebhook" + configuration: "is not there"},
			mend: func(t *testing.T) {
				p.must(t, "helm upgrade "+patientRelease+" charts/runtimeclass-router --namespace "+patientRelease+" --reuse-values")
				p.write(t, time.Now().AddDate(1, 0, 0), time.Now().AddDate(1, 0, 0))
				p.arm(t)
			}},
		{name: "no parameters", plant: "kubectl annotate serviceaccount " + patientRelease + "-guards --namespace " + patientRelease + " " + guardsLevels + "-", code: 3,
			want: map[string]string{"error parameters serviceaccount/runtimeclass-router/runtimeclass-router-guards": "has no parameters yet"},
			mend: func(t *testing.T) {
				p.must(t, "kubectl annotate serviceaccount "+patientRelease+"-guards --namespace "+patientRelease+" "+guardsLevels+"=trusted")
			}},
		{name: "a CA that ends", by: func(t *testing.T) { p.write(t, time.Now().AddDate(0, 0, 20), time.Now().AddDate(1, 0, 0)) }, code: 2,
			want: map[string]string{"warning ca-bundle mutatingwebhook" + configuration: "expires on"},
			mend: func(t *testing.T) { p.write(t, time.Now().AddDate(1, 0, 0), time.Now().AddDate(1, 0, 0)) }},
		{name: "a certificate that has ended", by: func(t *testing.T) { p.write(t, time.Now().AddDate(1, 0, 0), time.Now().AddDate(0, 0, -1)) }, code: 3,
			want: map[string]string{"error certificate secret/runtimeclass-router/runtimeclass-router-tls": "the certificate expired on"},
			mend: func(t *testing.T) { p.write(t, time.Now().AddDate(1, 0, 0), time.Now().AddDate(1, 0, 0)) }},
		{name: "an exception that has ended", by: func(t *testing.T) { p.except(t, -1) }, code: 2,
			want: map[string]string{"warning exceptions exception/agent": "expired on"}, mend: func(t *testing.T) { p.except(t, 365) }},
		{name: "an exception that ends", by: func(t *testing.T) { p.except(t, 10) }, code: 2,
			want: map[string]string{"warning exceptions exception/agent": "ends on"}, mend: func(t *testing.T) { p.except(t, 365) }},
		{name: "a policy that does not load", plant: "kubectl create --filename testdata/doctor/policy.yaml", code: 3,
			want: map[string]string{"error policy": "does not: broken/custom.rego:2", "unknown denied": "needs a policy that loads", "unknown namespaces": "", "unknown floors": ""},
			mend: func(t *testing.T) { p.must(t, "kubectl delete --filename testdata/doctor/policy.yaml") }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if fault.by != nil {
				fault.by(t)
			} else {
				p.must(t, fault.plant)
			}
			findings, code := p.examine(t, p.KubeconfigPath)
			if len(findings) != len(fault.want) || code != fault.code {
				t.Errorf("status %d, want %d: %v", code, fault.code, allSaid(findings))
			}
			for _, f := range findings {
				words, ok := fault.want[said(f)]
				if !ok || !strings.Contains(f.Message, words) {
					t.Errorf("%s: %s", said(f), f.Message)
				}
				if f.Next == "" && f.Severity != doctor.Note {
					t.Errorf("%s: there is no next command", said(f))
				}
				if fault.mend == nil && !strings.HasPrefix(f.Next, "runtimeclass-router why") {
					p.must(t, f.Next)
				}
			}
			if fault.mend != nil {
				fault.mend(t)
			}
			if findings, code := p.examine(t, p.KubeconfigPath); len(findings) > 0 || code != 0 {
				t.Fatalf("after it is mended: status %d: %v", code, allSaid(findings))
			}
		})
	}
}

// skipped: pods of trusted namespaces are not sent, and what is selected by that is no fault.
func (p *patient) skipped(t *testing.T) {
	p.must(t, "helm upgrade "+patientRelease+" charts/runtimeclass-router --namespace "+patientRelease+" --reuse-values --set webhook.skipTrusted=true")
	if findings, code := p.examine(t, p.KubeconfigPath); len(findings) > 0 || code != 0 {
		t.Errorf("status %d: %+v", code, findings)
	}
	out, _, err := run(t, "", "why", "agent", "-n", "infra", "--kubeconfig", p.KubeconfigPath)
	if err != nil || !strings.Contains(out, "today   not decided") || !strings.Contains(out, "(webhook.skipTrusted)") {
		t.Errorf("%v\n%s", err, out)
	}
}

// except has the release's configuration carry an exception that ends so many days from now.
func (p *patient) except(t *testing.T, days int) {
	t.Helper()
	until := time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly)
	exception := fmt.Sprintf(`[{"name":"agent","namespaces":["shop"],"runtimeClassName":"crun","owner":"o","ticket":"t","reason":"r","until":"%s"}]`, until)
	p.must(t, "helm upgrade "+patientRelease+" charts/runtimeclass-router --namespace "+patientRelease+" --reuse-values --set-json router.exceptions="+exception)
}

// rights that are lacking make unknown what they are for, with their names; it is never fine.
func (p *patient) rights(t *testing.T) {
	reading := func(groups, resources []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: []string{"get", "list"}}
	}
	reader := []rbacv1.PolicyRule{
		reading([]string{""}, []string{"pods", "nodes", "namespaces", "configmaps", "serviceaccounts"}),
		reading([]string{"node.k8s.io", "admissionregistration.k8s.io"}, []string{"*"}),
	}
	for _, rules := range []struct {
		user  string
		rules []rbacv1.PolicyRule
	}{{"reader", reader}, {"viewer", reader[:1]}} {
		p.bind(t, rules.user, "", rules.rules)
	}
	p.bind(t, "tenant", "shop", []rbacv1.PolicyRule{reading([]string{""}, []string{"pods", "namespaces"})})
	release := []string{
		"unknown backstop", "unknown ca-bundle", "unknown certificate", "unknown custody", "unknown denied", "unknown exempt", "unknown failure-policy",
		"unknown fallback", "unknown floors", "unknown isolation", "unknown namespaces", "unknown pools", "unknown webhooks",
	}
	for user, test := range map[string]struct {
		args  []string
		want  []string // each once or more
		needs []string
		code  int
	}{
		"reader":         {nil, []string{"unknown certificate"}, []string{"get secrets/runtimeclass-router-tls --namespace runtimeclass-router"}, 2},
		"reader skips":   {[]string{"--skip", "certificate"}, []string{}, nil, 0},
		"viewer":         {nil, release, []string{"list runtimeclasses.node.k8s.io", "get validatingwebhookconfigurations/runtimeclass-router", "get mutatingadmissionpolicies/runtimeclass-router-fallback"}, 2},
		"tenant":         {[]string{"-n", "shop"}, append([]string{"unknown exceptions", "unknown handlers", "unknown parameters", "unknown policy"}, release...), []string{"list nodes", "get configmaps/runtimeclass-router-config"}, 2},
		"tenant without": {nil, append([]string{"unknown exceptions", "unknown handlers", "unknown parameters", "unknown policy"}, release...), []string{"list pods --all-namespaces", "list namespaces"}, 2},
	} {
		t.Run(user, func(t *testing.T) {
			name, _, _ := strings.Cut(user, " ")
			kubeconfig, err := p.AddUserKubeconfig(name)
			if err != nil {
				t.Fatal(err)
			}
			var findings []doctor.Finding
			var code int
			slices.Sort(test.want)
			for deadline := time.Now().Add(time.Minute); ; { // what RBAC grants is known a moment later
				findings, code = p.examine(t, kubeconfig, test.args...)
				if slices.Equal(slices.Compact(allSaid(findings)), test.want) || time.Now().After(deadline) {
					break
				}
			}
			if got := slices.Compact(allSaid(findings)); !slices.Equal(got, test.want) || code != test.code {
				t.Errorf("status %d, want %d:\n%v, want\n%v", code, test.code, got, test.want)
			}
			for _, need := range test.needs {
				if !slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.Unknown && strings.Contains(f.Message, need) }) {
					t.Errorf("nothing is unknown for want of %q", need)
				}
			}
		})
	}
}

// bind gives a user rules, in one namespace or everywhere.
func (p *patient) bind(t *testing.T, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	rbac := p.clients.RbacV1()
	_, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}
	if err == nil && namespace == "" {
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err == nil && namespace != "" {
		_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

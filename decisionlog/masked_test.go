package decisionlog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/runtimeclass-router/runtimeclass-router/webhook"
)

// secrets makes words that occur nowhere else.
type secrets struct{ *rand.Rand }

// mark is in each of them.
const mark = "s3cret"

func (s *secrets) word() string { return fmt.Sprintf("%s%08x", mark, s.Uint32()) }

func (s *secrets) words() (words []string) {
	for range s.IntN(3) {
		words = append(words, s.word())
	}
	return words
}

func (s *secrets) container(name string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: "i", Command: s.words(), Args: s.words(), WorkingDir: "/" + s.word(),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: s.words()}}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/" + s.word(), HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: s.word()}},
		}}},
	}
	for range s.IntN(4) {
		c.Env = append(c.Env, corev1.EnvVar{Name: s.word(), Value: s.word()},
			corev1.EnvVar{Name: s.word(), ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: s.word()}}})
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{Prefix: s.word()})
	}
	if s.IntN(3) == 0 {
		yes := true
		c.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	}
	return c
}

// pod has secrets wherever a pod's author may put one, and some of what is denied.
func (s *secrets) pod() *corev1.Pod {
	controller := true
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{s.word(): s.word()},
			Annotations: map[string]string{
				"example.com/" + s.word(): s.word(), "kubectl.kubernetes.io/last-applied-configuration": s.word(),
				"runtimeclass-router.io/reason": s.word(), "runtimeclass-router.io/" + s.word(): s.word(),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs-1", Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{s.container("i")}, Containers: []corev1.Container{s.container("a"), s.container("b")},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: s.word()}}, Hostname: s.word(), HostNetwork: s.IntN(3) == 0,
		},
	}
	if s.IntN(3) == 0 {
		p.Annotations["dev.gvisor.spec.mount"] = s.word()
	}
	if s.IntN(3) == 0 {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}
	if s.IntN(4) == 0 {
		p.Spec.NodeSelector = map[string]string{"runtimeclass-router.io/pool": "nowhere"}
	}
	return p
}

// TestNothingOfAPodIsTold holds lines, uploads and Events to the shipped policy: no word of an
// environment, a command, an annotation or a label is in any of them.
func TestNothingOfAPodIsTold(t *testing.T) {
	t.Parallel()
	s := &secrets{rand.New(rand.NewPCG(20261130, 1))}
	recorded := &recorder{}
	events, err := newDenials(recorded, (&metricsForTest{}).counts())
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(t)
	outcomes := map[string]int{}
	for i := range 200 {
		raw := asJSON(t, s.pod())
		switch i % 8 {
		case 6: // what cannot be read, in the place where it hurts
			raw = strings.Replace(raw, `"containers":[`, `"nodeSelector":{"a":"`+s.word()+`","b":["`+s.word()+`"]},"containers":[`, 1)
		case 7:
			raw = strings.Replace(raw, `"annotations":{`, `"annotations":{"`+s.word()+`":["`+s.word()+`"],`, 1)
		}
		namespace := []string{"untrusted", "trusted", "unlabelled"}[i%3]
		server.mutate.Handle(t.Context(), review(namespace, fmt.Sprint("u-", i), raw))
		server.validate.Handle(t.Context(), review(namespace, fmt.Sprint("v-", i), raw))
	}
	for _, d := range server.seen.decisions {
		e := newEntry(d)
		events.decided(d)
		outcomes[e.Action]++
		told := asJSON(t, e) + asJSON(t, newEvent(e, nil))
		if strings.Contains(told, mark) {
			t.Fatalf("a secret is told:\n%s", told)
		}
	}
	if said := strings.Join(recorded.said, "\n"); said == "" || strings.Contains(said, mark) {
		t.Errorf("a secret is told, or nothing is:\n%s", said)
	}
	for _, outcome := range []string{"deny", "route", ""} {
		if outcomes[outcome] < 10 {
			t.Errorf("%v: the test shows little", outcomes)
		}
	}
}

// TestNoFieldIsForWhatAPodHolds: a field that is added to a line is weighed here.
func TestNoFieldIsForWhatAPodHolds(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{}
	for _, name := range strings.Fields(`log time decisionID webhook operation subResource namespace name generateName owner user dryRun allowed
		mode action trust isolation runtimeClassName previousRuntimeClassName reasons warnings exception policyRevision source durationSeconds error`) {
		allowed[name] = true
	}
	d := *decide(t, "untrusted", hostNetwork)
	d.Route.Warnings, d.Route.Exception = []string{"w"}, "e"
	for _, d := range []*webhook.Decision{&d, failed()} {
		var fields map[string]any
		if err := json.Unmarshal([]byte(asJSON(t, newEntry(d))), &fields); err != nil {
			t.Fatal(err)
		}
		for name := range maps.Keys(fields) {
			if !allowed[name] {
				t.Errorf("field %s", name)
			}
		}
	}
}

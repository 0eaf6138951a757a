package policies

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/rego"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// readings are what a generated policy may say about its input. Each shows, in the reasons of
// the decision, all that it reads.
var readings = []string{
	`json.marshal(input.pod.spec.hostNetwork)`,
	`json.marshal(input.pod.metadata.labels.a)`,
	`json.marshal(input.pod.metadata.labels["example.com/b"])`,
	`json.marshal(input.pod.metadata.labels)`,
	`json.marshal(input.pod.metadata.annotations)`,
	`json.marshal(input.pod.metadata.annotations.a)`,
	`json.marshal(input.pod.metadata.name)`,
	`json.marshal(input.pod.metadata)`,
	`json.marshal([image | image := input.pod.spec.containers[_].image])`,
	`json.marshal([v.hostPath.path | some v in input.pod.spec.volumes])`,
	`json.marshal([k | some k, _ in input.pod.spec.nodeSelector])`,
	`json.marshal(input.pod.spec)`,
	`json.marshal(input.pod)`,
	`json.marshal(input.namespace.labels.a)`,
	`json.marshal(input.namespace)`,
	`json.marshal(input.request.userInfo.username)`,
	`json.marshal(input.request.name)`,
	`json.marshal(input.request.date)`,
	`json.marshal(input.request)`,
	`json.marshal(input.node)`,
	`json.marshal(input)`,
	`json.marshal([path | walk(input, [path, "x"])])`,
	`json.marshal(object.get(input, ["pod", "metadata", "labels", "a"], "none"))`,
	`json.marshal([x | some key in ["hostNetwork", "hostPID"]; x := input.pod.spec[key]])`,
	`json.marshal({k: v | some k in ["a", "example.com/b"]; v := input.pod.metadata.labels[k]})`,
}

func generatedPolicy(r *rand.Rand) string {
	var rules []string
	for range 1 + r.IntN(3) {
		rules = append(rules, "reasons contains x if x := "+readings[r.IntN(len(readings))])
	}
	return "package router\n\ndecision := {\"action\": \"keep\", \"trust\": \"untrusted\", \"reasons\": sort(reasons)}\n\n" + strings.Join(rules, "\n\n") + "\n"
}

// pick returns one of the alternatives; an empty one leaves a field out.
func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func object(members ...string) string {
	kept := []string{}
	for _, m := range members {
		if m != "" {
			kept = append(kept, m)
		}
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// generatedInput draws each field from few values, so that equal ones meet often.
func generatedInput(r *rand.Rand) string {
	strings := func(name string) string {
		return pick(r, "", `"`+name+`":{}`, `"`+name+`":`+object(pick(r, "", `"a":"x"`, `"a":"y"`), pick(r, "", `"example.com/b":"x"`), pick(r, "", `"apps.kubernetes.io/pod-index":"1"`, `"apps.kubernetes.io/pod-index":"2"`)))
	}
	container := func() string {
		return object(`"name":"c"`, pick(r, `"image":"x"`, `"image":"y"`, ""), pick(r, "", `"volumeMounts":[]`, `"volumeMounts":[{"name":"kube-api-access-x","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]`, `"volumeMounts":[{"name":"kube-api-access-x","mountPath":"/x"}]`))
	}
	volume := func() string {
		return pick(r, `{"name":"v","hostPath":{"path":"/x"}}`, `{"name":"v","hostPath":{"path":"/y"}}`, `{"name":"kube-api-access-x","projected":{}}`, `{"name":"d","persistentVolumeClaim":{"claimName":"d-p-1"}}`)
	}
	return object(
		`"kind":"Pod"`,
		`"metadata":`+object(pick(r, "", `"name":"p-1"`, `"name":"p-2"`), strings("labels"), strings("annotations"), pick(r, "", `"ownerReferences":[{"kind":"StatefulSet"}]`), pick(r, "", `"managedFields":[{"x":1}]`)),
		`"spec":`+object(pick(r, "", `"hostNetwork":true`, `"hostNetwork":false`), pick(r, "", `"hostPID":true`), strings("nodeSelector"),
			`"containers":[`+container()+`]`, pick(r, "", `"volumes":[`+volume()+`]`, `"volumes":[`+volume()+","+volume()+`]`), pick(r, "", `"nodeName":"n"`)),
		pick(r, "", `"status":{"phase":"Pending"}`),
	)
}

// TestMemoryConfusesNobody: whatever a policy reads, a remembered decision is the one that
// an evaluation over the whole input gives.
func TestMemoryConfusesNobody(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) // any seed will do, and this one is repeatable
	hits := uint64(0)
	for range 25 {
		source := generatedPolicy(r)
		engine := NewEngine()
		if err := engine.Load(t.Context(), Modules{"p.rego": source}, DefaultConfig()); err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		s, err := engine.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			raw := generatedInput(r)
			in := Input{
				Request:   Request{Name: pick(r, "", "p-1"), Date: pick(r, "2030-01-01", "2030-01-02"), DryRun: r.IntN(2) == 0, UserInfo: authenticationv1.UserInfo{Username: pick(r, "u", "v")}},
				Namespace: catalog.Namespace{Name: pick(r, "n", "m"), Labels: map[string]string{pick(r, "a", "b"): pick(r, "x", "y")}},
				Pod:       mustRead(raw),
			}
			got, err := s.Decide(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			value, err := in.value(s.catalog, everything)
			if err != nil {
				t.Fatal(err)
			}
			results, err := s.query.Eval(t.Context(), rego.EvalParsedInput(value))
			if err != nil {
				t.Fatal(err)
			}
			want, err := decodeDecision(results[0].Expressions[0].Value)
			if err != nil {
				t.Fatal(err)
			}
			want.Remembered = got.Remembered
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("remembered for another pod (-evaluated +remembered):\n%s\n%s\n%s", diff, source, raw)
			}
		}
		hits += engine.Memory().Hits
	}
	if hits < 500 {
		t.Errorf("%d hits: the test shows nothing", hits)
	}
}

// TestCopiesAreDecidedOnce: what controllers and the API server make different on each copy
// of a pod is not read.
func TestCopiesAreDecidedOnce(t *testing.T) {
	t.Parallel()
	for name, pod := range map[string]func(i int) string{
		"Deployment": func(i int) string {
			return fmt.Sprintf(`{"metadata":{"generateName":"web-6f7-","labels":{"app":"web","pod-template-hash":"6f7"},"ownerReferences":[{"kind":"ReplicaSet"}]},"spec":{
				"volumes":[{"name":"kube-api-access-%05d","projected":{"sources":[]}}],
				"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"kube-api-access-%05d","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]}]}}`, i, i)
		},
		"StatefulSet": func(i int) string {
			return fmt.Sprintf(`{"metadata":{"name":"db-%d","labels":{"app":"db","apps.kubernetes.io/pod-index":"%d","statefulset.kubernetes.io/pod-name":"db-%d"},"ownerReferences":[{"kind":"StatefulSet"}]},"spec":{
				"hostname":"db-%d","volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-db-%d"}}],"containers":[{"name":"c","image":"i"}]}}`, i, i, i, i, i)
		},
		"indexed Job": func(i int) string {
			return fmt.Sprintf(`{"metadata":{"generateName":"sum-%d-","labels":{"job-name":"sum","batch.kubernetes.io/job-completion-index":"%d"},"annotations":{"batch.kubernetes.io/job-completion-index":"%d"},"ownerReferences":[{"kind":"Job"}]},"spec":{
				"hostname":"sum-%d","containers":[{"name":"c","image":"i"}]}}`, i, i, i, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := NewEngine()
			if err := engine.Load(t.Context(), Shipped(), DefaultConfig()); err != nil {
				t.Fatal(err)
			}
			s, err := engine.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				in := plainInput()
				in.Pod = mustRead(pod(i))
				d, err := s.Decide(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if d.Remembered != (i > 0) {
					t.Errorf("copy %d: remembered %t", i, d.Remembered)
				}
			}
			if got := engine.Memory(); got.Misses != 1 || got.Hits != 49 || got.Size != 1 {
				t.Errorf("%+v, want one evaluation for 50 copies", got)
			}
		})
	}
}

func newTestMemory(t *testing.T) *memory {
	t.Helper()
	m, err := newMemory(&counts{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEqualsWaitForOneEvaluation, which the first caller's going away does not end.
func TestEqualsWaitForOneEvaluation(t *testing.T) {
	t.Parallel()
	m := newTestMemory(t)
	started, release := make(chan struct{}), make(chan struct{})
	evaluate := func(ctx context.Context) (Decision, error) {
		close(started)
		<-release
		return Decision{Trust: "once"}, ctx.Err()
	}
	leading, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := m.decide(leading, key{1}, evaluate)
		left <- err
	}()
	<-started
	var followers sync.WaitGroup
	for range 20 {
		followers.Go(func() {
			if d, err := m.decide(t.Context(), key{1}, evaluate); err != nil || d.Trust != "once" {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
	leave()
	var fault *Fault
	if err := <-left; !errors.As(err, &fault) || fault.Kind != TimedOut {
		t.Errorf("the caller that left got %v", err)
	}
	close(release)
	followers.Wait()
	if n := m.counts.misses.Load(); n != 1 {
		t.Errorf("%d evaluations, want 1", n)
	}
}

// TestAnEvaluationThatHasEndedIsRecalled by who found nothing before it ended.
func TestAnEvaluationThatHasEndedIsRecalled(t *testing.T) {
	t.Parallel()
	m := newTestMemory(t)
	m.decisions.Add(key{1}, Decision{Trust: "once"})
	d, err := m.evaluate(t.Context(), key{1}, func(context.Context) (Decision, error) {
		return Decision{Trust: "again"}, nil
	})
	if err != nil || d.Trust != "once" || !d.Remembered || m.counts.hits.Load() != 1 || m.counts.misses.Load() != 0 {
		t.Errorf("got %+v, %v, %d hits, %d misses", d, err, m.counts.hits.Load(), m.counts.misses.Load())
	}
}

// TestEvaluationsRunSideBySide: nothing is locked while the policy is asked.
func TestEvaluationsRunSideBySide(t *testing.T) {
	t.Parallel()
	m := newTestMemory(t)
	var both sync.WaitGroup
	both.Add(2)
	var callers sync.WaitGroup
	for i := range 2 {
		callers.Go(func() {
			_, err := m.decide(t.Context(), key{byte(i)}, func(context.Context) (Decision, error) {
				both.Done()
				both.Wait() // for the other one to be here too
				return Decision{}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

// TestACallerIsAnsweredAtItsDeadline, though an evaluation cannot be interrupted; and when
// many were left behind, no other is begun.
func TestACallerIsAnsweredAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newTestMemory(t)
		release := make(chan struct{})
		stuck := func(context.Context) (Decision, error) {
			<-release
			return Decision{}, nil
		}
		var fault *Fault
		for i := range maxAbandoned + 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begin := time.Now()
			_, err := m.decide(ctx, key{byte(i)}, stuck)
			cancel()
			if !errors.As(err, &fault) || fault.Kind != TimedOut || time.Since(begin) > time.Second {
				t.Errorf("after %s: %v", time.Since(begin), err)
			}
			time.Sleep(2 * grace)
		}
		if n, misses := m.counts.watchdog.abandoned.Load(), m.counts.misses.Load(); n != maxAbandoned || misses != maxAbandoned {
			t.Errorf("%d left behind of %d begun, want %d", n, misses, maxAbandoned)
		}
		close(release)
		synctest.Wait()
		if n := m.counts.watchdog.abandoned.Load(); n != 0 {
			t.Errorf("%d are still counted", n)
		}
	})
}

func TestErrorsAreNotRemembered(t *testing.T) {
	t.Parallel()
	m := newTestMemory(t)
	for name, evaluate := range map[string]func(context.Context) (Decision, error){
		"error": func(context.Context) (Decision, error) {
			return Decision{}, &Fault{Kind: Undefined, Err: errors.New("x")}
		},
		"panic": func(context.Context) (Decision, error) { panic("x") },
	} {
		for range 2 {
			var fault *Fault
			if _, err := m.decide(t.Context(), key{}, evaluate); !errors.As(err, &fault) {
				t.Errorf("%s: got %v, want a fault", name, err)
			}
		}
	}
	if n, size := m.counts.misses.Load(), m.decisions.Len(); n != 4 || size != 0 {
		t.Errorf("%d evaluations, %d remembered", n, size)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newTestMemory(t)
	for i := range remembered + 10 {
		k := key{byte(i), byte(i >> 8), byte(i >> 16)}
		if _, err := m.decide(t.Context(), k, func(context.Context) (Decision, error) { return Decision{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if size, evicted := m.decisions.Len(), m.counts.evicted.Load(); size != remembered || evicted != 10 {
		t.Errorf("%d remembered, %d evicted", size, evicted)
	}
}

// TestReadPodRefuses what is no pod, and names the field.
func TestReadPodRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``:                                      "EOF",
		`{"spec": `:                             "EOF",
		`[]`:                                    "want an object",
		`{"spec": []}`:                          "spec: [, want an object",
		`{"spec": {}, "spec": {}}`:              "field spec is given twice",
		`{"spec": {"a": 1, "a": 1}}`:            "field a is given twice",
		`{"metadata": {"labels": {"a": 1}}}`:    "metadata.labels",
		`{"metadata": {"annotations": "a"}}`:    "metadata.annotations",
		`{"spec": {"volumes": [{"name": "kube-`: "spec",
	} {
		if _, err := ReadPod([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

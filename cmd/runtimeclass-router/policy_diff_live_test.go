package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const movedPolicy = "testdata/policy/moved"

// TestPolicyDiffCounts: of a generated cluster, from a file and live, exactly those pods
// are reported that a change moves. A policy may move any pod, so that there are fewer.
func TestPolicyDiffCounts(t *testing.T) {
	t.Parallel()
	const relabelled = 4 // a trusted namespace
	for change, test := range map[string]struct {
		pods int
		args []string
		// moves says whether a pod's route changes, and whether to a denial.
		moves func(generated) (changed, denied bool)
	}{
		"policy": {600, []string{"--new", movedPolicy}, func(g generated) (bool, bool) {
			return g.shape() == "job" || g.shape() == "database", g.shape() == "job" && g.kind() <= 1
		}},
		"label": {2000, []string{"--set-label", fmt.Sprintf("ns-%02d:runtimeclass-router.io/trust=untrusted", relabelled)}, func(g generated) (bool, bool) {
			return g.namespace == relabelled, g.namespace == relabelled && (g.shape() == "host" || g.shape() == "agent")
		}},
	} {
		want := diffReport{Compared: test.pods}
		for i := range test.pods {
			changed, denied := test.moves(generate(i))
			if changed {
				want.Changed++
			}
			if denied {
				want.NewlyDenied++
			}
		}
		pods := generatedPods(t, test.pods)
		for name, from := range map[string][]string{
			"file": {"-f", writePodList(t, pods)},
			"live": {"--kubeconfig", (&pagingServer{pods: pods}).kubeconfig(t)},
		} {
			t.Run(name+"/"+change, func(t *testing.T) {
				t.Parallel()
				out, errOut, err := run(t, "", append(append([]string{"policy", "diff", "-o", "json"}, from...), test.args...)...)
				if status(err) != exitNewlyDenied || errOut != "" {
					t.Errorf("status %d: %v\n%s", status(err), err, errOut)
				}
				var got diffReport
				if err := json.Unmarshal([]byte(out), &got); err != nil {
					t.Fatal(err)
				}
				for _, c := range got.Changes {
					if kind, name, _ := strings.Cut(c.Owner, "/"); kind == "ReplicaSet" || kind != "Pod" && strings.Contains(name, "-5d4f") {
						t.Errorf("owner %s is not that of the ReplicaSet", c.Owner)
					}
				}
				got.Changes = nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

// TestPolicyDiffReadsByThePage, and asks for what the flags say.
func TestPolicyDiffReadsByThePage(t *testing.T) {
	t.Parallel()
	server := &pagingServer{pods: generatedPods(t, 1200)}
	out, errOut, err := run(t, "", "policy", "diff", "--kubeconfig", server.kubeconfig(t), "--context", "c", "-n", "shop", "-l", "app=web,!old")
	if err != nil || errOut != "" || !strings.Contains(out, "0 of 1200 change") {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	if len(server.requests) != 3 {
		t.Errorf("%d requests, want 3 pages", len(server.requests))
	}
	for i, query := range server.requests {
		if query.Get("limit") != "500" || query.Get("labelSelector") != "app=web,!old" || server.paths[i] != "/api/v1/namespaces/shop/pods" {
			t.Errorf("request %d: %s?%s", i, server.paths[i], query.Encode())
		}
	}
}

// TestPolicyDiffOfAListThatExpired goes on where the API server offers to.
func TestPolicyDiffOfAListThatExpired(t *testing.T) {
	t.Parallel()
	pods := generatedPods(t, 1200)
	out, errOut, err := run(t, "", "policy", "diff", "--kubeconfig", (&pagingServer{pods: pods, expireAt: 500, goOn: "fresh-500"}).kubeconfig(t))
	if err != nil || !strings.Contains(errOut, "note: the list took longer") || !strings.Contains(out, "0 of 1200 change") {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	for name, goOn := range map[string]string{"nothing is offered": "", "the same is offered": "500"} {
		out, _, err := run(t, "", "policy", "diff", "--kubeconfig", (&pagingServer{pods: pods, expireAt: 500, goOn: goOn}).kubeconfig(t))
		if status(err) != 1 || !strings.Contains(err.Error(), "list pods: the server says Expired: the list took longer") || out != "" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestPolicyDiffOfAClusterThatDoesNotAnswer reports nothing.
func TestPolicyDiffOfAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"pods", "nodes", "namespaces", "runtimeclasses"} {
		out, _, err := run(t, "", "policy", "diff", "--kubeconfig", (&pagingServer{forbid: resource}).kubeconfig(t))
		if status(err) != 1 || !strings.Contains(err.Error(), "list ") || !strings.Contains(err.Error(), "Forbidden") || out != "" {
			t.Errorf("%s: %v\n%s", resource, err, out)
		}
	}
}

// TestPolicyDiffOfManifestsOverALiveCluster takes only the cluster from there.
func TestPolicyDiffOfManifestsOverALiveCluster(t *testing.T) {
	t.Parallel()
	server := &pagingServer{pods: generatedPods(t, 10)}
	out, _, err := run(t, "", "policy", "diff", "--kubeconfig", server.kubeconfig(t), "-f", diffPods, "--new", diffPolicy)
	if status(err) != exitNewlyDenied || !strings.Contains(out, "3 of 5 change") || len(server.requests) != 0 {
		t.Errorf("%v, %d lists of pods\n%s", err, len(server.requests), out)
	}
}

// TestPolicyDiffSkips what the webhook is not asked about.
func TestPolicyDiffSkips(t *testing.T) {
	t.Parallel()
	const list = `{"items": [
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "dns", "namespace": "kube-system"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static", "namespace": "shop", "annotations": {"kubernetes.io/config.mirror": "1"},
			"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": true}]}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "claims-it", "namespace": "shop", "annotations": {"kubernetes.io/config.mirror": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}`
	args := []string{"policy", "diff", "-f", "-", "--set-label", "kube-system:runtimeclass-router.io/trust=untrusted"}
	out, errOut, err := run(t, list, args...)
	if err != nil || !strings.Contains(out, "0 of 1 change") || !strings.Contains(errOut, "namespace kube-system is exempt") {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
	out, _, err = run(t, list, append(args, "--exempt-namespaces", "none")...)
	if err != nil || !strings.Contains(out, "1 of 2 change") {
		t.Errorf("none is exempt: %v\n%s", err, out)
	}
}

// TestProgress counts until it knows the end.
func TestProgress(t *testing.T) {
	t.Parallel()
	var drawn strings.Builder
	p := &progress{out: &drawn, drawn: -1}
	for i := range int64(200) {
		p.At(i + 1)
	}
	p.size = 400
	p.At(201)
	p.At(202)
	p.At(400)
	p.done()
	want := "\r100\r200\r[" + strings.Repeat("=", 20) + strings.Repeat(" ", 20) + "]\r[" + strings.Repeat("=", 40) + "]\r" + strings.Repeat(" ", 42) + "\r"
	if drawn.String() != want {
		t.Errorf("drawn %q, want %q", drawn.String(), want)
	}
}

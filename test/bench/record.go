package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// recordNamespace is where the pods are created whose reviews are recorded.
func recordNamespace(trusted bool) string {
	if trusted {
		return "bench-recorded-trusted"
	}
	return "bench-recorded"
}

// review is one that the API server has sent, and that others are made of.
type review struct {
	raw   []byte
	token []byte // the random part of the injected volume's name
	uid   types.UID
}

// record returns what the API server sends of a pod in that namespace, which it makes.
func (h *harness) record(ctx context.Context, trusted bool) (*review, error) {
	trust := "untrusted"
	if trusted {
		trust = "trusted"
	}
	v := &variant{name: recordNamespace(trusted)[len("bench-"):], trust: trust}
	if err := h.createNamespace(ctx, v.namespace(), v.trust); err != nil {
		return nil, err
	}
	var seen atomic.Pointer[[]byte]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the API server is gone
		}
		seen.Store(&body)
		var asked admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true}
		asked.Request = nil
		_ = json.NewEncoder(w).Encode(asked) // the API server is gone
	})}
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		_ = server.ServeTLS(listener, filepath.Join(h.certificate.dir, "tls.crt"), filepath.Join(h.certificate.dir, "tls.key")) // that it was closed
	}()
	defer func() {
		_ = server.Close()
		<-serving
	}()
	if err := h.mutateBy(ctx, v.namespace(), listener.Addr().(*net.TCPAddr).Port); err != nil {
		return nil, err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = h.create(ctx, v, dryRun)
		return last == nil && seen.Load() != nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("record a review: %w (last answer: %w)", err, last)
	}
	return newReview(*seen.Load())
}

var tokenVolume = regexp.MustCompile(`kube-api-access-([a-z0-9]{5})`)

func newReview(raw []byte) (*review, error) {
	var asked admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &asked); err != nil {
		return nil, fmt.Errorf("read a recorded review: %w", err)
	}
	token := tokenVolume.FindSubmatch(raw)
	if token == nil {
		return nil, errors.New("the recorded review has no token volume")
	}
	return &review{raw: raw, token: token[1], uid: asked.Request.UID}, nil
}

// copied is the review of a copy of the pod: the uid differs, and the token volume's
// name.
func (r *review) copied(n int64) []byte {
	return bytes.ReplaceAll(r.fresh(n), append([]byte("kube-api-access-"), r.token...), fmt.Appendf(nil, "kube-api-access-%05d", n%100000))
}

// changed is the review of a pod that was not decided on before.
func (r *review) changed(n int64) []byte { return changed(r.copied(n), n) }

func (r *review) fresh(n int64) []byte {
	uid := fmt.Sprintf("%08x-0000-4000-8000-%012x", n&0xffffffff, n)
	return bytes.ReplaceAll(r.raw, []byte(r.uid), []byte(uid))
}

// changed gives a pod a toleration of its own: the policy reads which there are, since
// some bind a pod to virtual nodes.
func changed(body []byte, n int64) []byte {
	return bytes.ReplaceAll(body, []byte(teamTaint), fmt.Appendf(nil, "example.com/team-%d", n))
}

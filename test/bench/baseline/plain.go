package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// review is what the plain webhooks read of an AdmissionReview.
type review struct {
	Request struct {
		UID       types.UID `json:"uid"`
		Namespace string    `json:"namespace"`
		Object    struct {
			Spec struct {
				RuntimeClassName *string           `json:"runtimeClassName"`
				NodeSelector     map[string]string `json:"nodeSelector"`
				Tolerations      []struct{}        `json:"tolerations"`
			} `json:"spec"`
		} `json:"object"`
	} `json:"request"`
}

// answer is an AdmissionReview's response; Patch is encoded as base64.
type answer struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type response struct {
	UID       types.UID `json:"uid"`
	Allowed   bool      `json:"allowed"`
	Patch     []byte    `json:"patch,omitempty"`
	PatchType string    `json:"patchType,omitempty"`
}

func plainNoop(ctx context.Context, o options) error {
	return servePlain(ctx, o, func(*review) ([]byte, error) { return nil, nil })
}

func plainJob(ctx context.Context, o options) error {
	namespaces, err := watchNamespaces(ctx, o)
	if err != nil {
		return err
	}
	return servePlain(ctx, o, func(r *review) ([]byte, error) {
		namespace, err := namespaces.Get(r.Request.Namespace)
		if err != nil {
			return nil, err
		}
		spec := &r.Request.Object.Spec
		chosen, ok := routes[namespace.Labels[trustLabel]]
		if !ok || spec.RuntimeClassName != nil {
			return nil, nil
		}
		return chosen.patch(spec.NodeSelector != nil, spec.Tolerations != nil)
	})
}

// servePlain serves over HTTP/2 and HTTP/1.1. patch returns nil to leave a pod alone.
func servePlain(ctx context.Context, o options, patch func(*review) ([]byte, error)) error {
	mutate := &counter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var asked review
		if err == nil {
			err = json.Unmarshal(body, &asked)
		}
		said := answer{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview", Response: response{UID: asked.Request.UID, Allowed: true}}
		if err == nil {
			said.Response.Patch, err = patch(&asked)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if said.Response.Patch != nil {
			said.Response.PatchType = "JSONPatch"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said) // the client is gone
	})}
	mux := http.NewServeMux()
	mux.Handle("/mutate-pod", mutate)
	mux.HandleFunc("/count", mutate.report)
	server := &http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", o.port), Handler: mux}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	return server.ListenAndServeTLS(filepath.Join(o.certDir, "tls.crt"), filepath.Join(o.certDir, "tls.key"))
}

// watchNamespaces returns when all are known.
func watchNamespaces(ctx context.Context, o options) (corelisters.NamespaceLister, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	lister := factory.Core().V1().Namespaces().Lister()
	factory.Start(ctx.Done())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watch namespaces: %w", context.Cause(ctx))
		}
	}
	return lister, nil
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch writes the operations directly; what is missing of the pod is created.
func (r *route) patch(hasSelector, hasTolerations bool) ([]byte, error) {
	operations := []operation{{"add", "/spec/runtimeClassName", r.class}}
	if hasSelector {
		operations = append(operations, operation{"add", "/spec/nodeSelector/" + r.selectorPath, r.selectorValue})
	} else {
		operations = append(operations, operation{"add", "/spec/nodeSelector", map[string]string{r.selectorKey: r.selectorValue}})
	}
	if hasTolerations {
		operations = append(operations, operation{"add", "/spec/tolerations/-", r.toleration})
	} else {
		operations = append(operations, operation{"add", "/spec/tolerations", []corev1.Toleration{r.toleration}})
	}
	return json.Marshal(operations)
}

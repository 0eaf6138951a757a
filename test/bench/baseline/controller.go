package main

import (
	"context"
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func controllerServer(o options) webhook.Server {
	// controller-runtime's server offers HTTP/2, and HTTP/1.1 to who asks for it.
	return webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: o.port, CertDir: o.certDir})
}

func register(server webhook.Server, handler admission.Handler) {
	mutate := &counter{Handler: &admission.Webhook{Handler: handler}}
	server.Register("/mutate-pod", mutate)
	server.Register("/count", http.HandlerFunc(mutate.report))
}

func controllerNoop(ctx context.Context, o options) error {
	server := controllerServer(o)
	register(server, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
	return server.Start(ctx)
}

func controllerJob(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        scheme.Scheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: controllerServer(o),
	})
	if err != nil {
		return err
	}
	// Asked for here, so that it is watched before the first pod comes.
	if _, err := manager.GetCache().GetInformer(ctx, &corev1.Namespace{}); err != nil {
		return err
	}
	register(manager.GetWebhookServer(), &typedJob{namespaces: manager.GetClient(), decoder: admission.NewDecoder(scheme.Scheme)})
	return manager.Start(ctx)
}

// typedJob decodes the whole pod, changes it, encodes it again, and lets
// controller-runtime find the difference (jsonpatch.CreatePatch).
type typedJob struct {
	namespaces client.Reader
	decoder    admission.Decoder
}

// Handle implements admission.Handler.
func (j *typedJob) Handle(ctx context.Context, request admission.Request) admission.Response {
	var namespace corev1.Namespace
	if err := j.namespaces.Get(ctx, client.ObjectKey{Name: request.Namespace}, &namespace); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	var pod corev1.Pod
	if err := j.decoder.Decode(request, &pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	chosen, ok := routes[namespace.Labels[trustLabel]]
	if !ok || pod.Spec.RuntimeClassName != nil {
		return admission.Allowed("")
	}
	pod.Spec.RuntimeClassName = &chosen.class
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	pod.Spec.NodeSelector[chosen.selectorKey] = chosen.selectorValue
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, chosen.toleration)
	changed, err := json.Marshal(&pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

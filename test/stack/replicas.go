package stack

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startReplicas installs the chart as for a cluster and starts as many processes as its
// Deployment would have pods.
func (s *Stack) startReplicas(ctx context.Context, options Options) error {
	fmt.Fprintln(options.Progress, "installing the chart")
	if err := s.install(ctx, options.Values, nil); err != nil {
		return err
	}
	var err error
	if s.Service, err = s.NewService(ctx); err != nil {
		return err
	}
	if err := s.leadToService(ctx); err != nil {
		return err
	}
	fmt.Fprintf(options.Progress, "starting %d replicas\n", options.Replicas)
	for i := range options.Replicas {
		if err := s.AddReplica(ctx, fmt.Sprintf("replica-%d", i+1)); err != nil {
			return err
		}
	}
	if err := s.Service.WaitReady(ctx, options.Replicas); err != nil {
		return err
	}
	return s.waitLive(ctx, s.Service.Routers()[0].Log)
}

// AddReplica starts another process behind the Service. It is led to when a probe has found
// it ready.
func (s *Stack) AddReplica(ctx context.Context, name string) error {
	router, err := s.NewRouter(ctx, name)
	if err != nil {
		return err
	}
	if err := router.Start(ctx); err != nil {
		return err
	}
	s.Service.Add(router)
	return nil
}

// leadToService has the chart's Service lead to this machine, where a port is the [Service]:
// there is no kube-proxy.
func (s *Stack) leadToService(ctx context.Context) error {
	key := client.ObjectKey{Namespace: Namespace, Name: Release}
	service := &corev1.Service{}
	if err := s.Client.Get(ctx, key, service); err != nil {
		return fmt.Errorf("read the chart's Service: %w", err)
	}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	if err := s.Client.Update(ctx, service); err != nil {
		return fmt.Errorf("change the chart's Service: %w", err)
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := s.Client.Get(ctx, client.ObjectKey{Name: Release}, configuration); err != nil {
			return fmt.Errorf("read the chart's webhooks: %w", err)
		}
	}
	port := ptr.To(int32(s.Service.Port()))
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.Service.Port = port
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.Service.Port = port
	}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := s.Client.Update(ctx, configuration); err != nil {
			return fmt.Errorf("change the chart's webhooks: %w", err)
		}
	}
	return nil
}

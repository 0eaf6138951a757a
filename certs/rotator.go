package certs

import (
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const owner = "runtimeclass-router"

// dnsName is the name under which the API server calls a Service.
func (o *Options) dnsName() string { return o.ServiceName + "." + o.Namespace + ".svc" }

// addRotator adds to mgr a rotator that keeps the Secret and the webhook
// configurations in step. As shipped by cert-controller, a CA lives ten years and a
// leaf one, and each is renewed 90 days before its end.
func addRotator(mgr manager.Manager, o *Options) error {
	return rotator.AddRotator(narrow(mgr, o), &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: o.Namespace, Name: o.SecretName},
		CertDir:        o.Directory,
		CAName:         owner,
		CAOrganization: owner,
		DNSName:        o.dnsName(),
		ExtraDNSNames: []string{
			o.dnsName() + ".cluster.local",
			o.ServiceName + "." + o.Namespace,
			o.ServiceName,
		},
		// Closed by the rotator, and it must not be nil; Wait asks more than it says.
		IsReady: make(chan struct{}),
		Webhooks: []rotator.WebhookInfo{
			{Name: o.WebhookConfiguration, Type: rotator.Mutating},
			{Name: o.WebhookConfiguration, Type: rotator.Validating},
		},
		FieldOwner: owner,
		// Every replica must become ready, leader or not. Two that write at once are
		// told apart by the resource version: the loser reads again and finds a pair.
		RequireLeaderElection: false,
	})
}

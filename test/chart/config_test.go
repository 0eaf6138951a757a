package chart

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/runtimeclass-router/runtimeclass-router/audit"
	"github.com/runtimeclass-router/runtimeclass-router/backstop"
	"github.com/runtimeclass-router/runtimeclass-router/certs"
	"github.com/runtimeclass-router/runtimeclass-router/decisionlog"
	"github.com/runtimeclass-router/runtimeclass-router/policies"
	"github.com/runtimeclass-router/runtimeclass-router/policies/sources"
)

// file is what of the configuration file this test can hold to something; the whole
// is decoded by the command.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Webhook    struct {
		Port          int             `json:"port"`
		Deadline      json.RawMessage `json:"deadline"`
		Drain         json.RawMessage `json:"drain"`
		Configuration string          `json:"configuration"`
	} `json:"webhook"`
	Metrics     json.RawMessage     `json:"metrics"`
	Health      json.RawMessage     `json:"health"`
	Certs       certs.Options       `json:"certs"`
	Guards      backstop.Options    `json:"guards"`
	Audit       audit.Options       `json:"audit"`
	Log         json.RawMessage     `json:"log"`
	DecisionLog decisionlog.Options `json:"decisionLog"`
	Policies    struct {
		Mode            string `json:"mode"`
		sources.Options `json:",inline"`
	} `json:"policies"`
	Router json.RawMessage `json:"router"`
}

func configuration(t *testing.T, objects []client.Object) file {
	t.Helper()
	for _, object := range objects {
		configMap, ok := object.(*corev1.ConfigMap)
		if !ok || configMap.Data["config.yaml"] == "" {
			continue
		}
		raw, err := yaml.YAMLToJSONStrict([]byte(configMap.Data["config.yaml"]))
		if err != nil {
			t.Fatal(err)
		}
		var f file
		strict, err := kjson.UnmarshalStrict(raw, &f)
		if err := errors.Join(append(strict, err)...); err != nil {
			t.Fatal(err)
		}
		return f
	}
	t.Fatal("rendered no configuration file")
	return file{}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, values)
			f := configuration(t, objects)
			if f.APIVersion != "runtimeclass-router.io/v1alpha1" || f.Kind != "RouterConfiguration" {
				t.Errorf("apiVersion %s, kind %s", f.APIVersion, f.Kind)
			}
			checkCerts(t, f, objects)
			if err := f.Certs.Validate(field.NewPath("certs")).ToAggregate(); err != nil {
				t.Error(err)
			}
			if err := f.DecisionLog.Validate(field.NewPath("decisionLog")).ToAggregate(); err != nil {
				t.Error(err)
			}
			if err := f.Policies.Validate(field.NewPath("policies")).ToAggregate(); err != nil {
				t.Error(err)
			}
			checkAudit(t, f, objects)
			if got := f.Policies.ConfigMaps.Namespace; got != namespace {
				t.Errorf("policy ConfigMaps are watched in namespace %q, want the release's", got)
			}
			checkGuards(t, f.Guards, objects)
			router, err := policies.ParseConfig(f.Router)
			if err != nil {
				t.Fatal(err)
			}
			if err := router.Validate(field.NewPath("router")).ToAggregate(); err != nil {
				t.Error(err)
			}
			checkMounts(t, f, only[*appsv1.Deployment](t, objects))
		})
	}
}

// checkAudit: a scan has its lease and leaves out the pods that the webhook is not asked
// about. podsPerSecond is the file's to give, or the default's.
func checkAudit(t *testing.T, f file, objects []client.Object) {
	t.Helper()
	var leases []string
	for _, object := range objects {
		if lease, ok := object.(*coordinationv1.Lease); ok {
			leases = append(leases, lease.Name)
		}
	}
	if f.Audit.Interval.Duration == 0 {
		if len(leases) > 0 {
			t.Errorf("no scan, and leases %v", leases)
		}
		return
	}
	f.Audit.PodsPerSecond = max(f.Audit.PodsPerSecond, 1)
	if err := f.Audit.Validate(field.NewPath("audit")).ToAggregate(); err != nil {
		t.Error(err)
	}
	if want := []string{f.Audit.Lease.Name}; !cmp.Equal(want, leases) || f.Audit.Lease.Namespace != namespace {
		t.Errorf("lease %v, and rendered are %v", f.Audit.Lease, leases)
	}
	exempt := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks[0].NamespaceSelector.MatchExpressions[0].Values
	if diff := cmp.Diff(exempt, f.Audit.ExemptNamespaces); diff != "" {
		t.Errorf("exempt namespaces (-webhook +audit):\n%s", diff)
	}
}

// checkMounts holds the directories that the configuration names to what is mounted.
func checkMounts(t *testing.T, f file, deployment *appsv1.Deployment) {
	t.Helper()
	mounted := map[string]string{}
	for _, mount := range deployment.Spec.Template.Spec.Containers[0].VolumeMounts {
		mounted[mount.MountPath] = mount.Name
	}
	want := map[string]string{"/etc/runtimeclass-router/config": "config"}
	bundle, upload := f.Policies.Bundle, f.DecisionLog.Upload
	for directory, volume := range map[string]string{
		bundle.PersistDirectory: "bundle", bundle.KeysDirectory: "bundle-keys",
		bundle.CredentialsDirectory: "bundle-credentials", strings.TrimSuffix(bundle.CAFile, "/ca.crt"): "bundle-ca",
		upload.CredentialsDirectory: "upload-credentials", strings.TrimSuffix(upload.CAFile, "/ca.crt"): "upload-ca",
	} {
		if directory != "" {
			want[directory] = volume
		}
	}
	if diff := cmp.Diff(want, mounted); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

// checkCerts holds the names that the configuration gives to those of the objects.
func checkCerts(t *testing.T, f file, objects []client.Object) {
	t.Helper()
	want := certs.Options{
		Mode:        certs.Secret,
		Namespace:   namespace,
		SecretName:  f.Certs.SecretName,
		ServiceName: only[*corev1.Service](t, objects).Name,
	}
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok { // rendered for the product's own
			want.Mode, want.SecretName = certs.Self, secret.Name
		}
	}
	if diff := cmp.Diff(want, f.Certs); diff != "" {
		t.Errorf("certs (-want +got):\n%s", diff)
	}
	mutating := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Name
	validating := only[*admissionregistrationv1.ValidatingWebhookConfiguration](t, objects).Name
	if f.Webhook.Configuration != mutating || mutating != validating {
		t.Errorf("the webhook configurations are called %s and %s, and webhook.configuration says %s", mutating, validating, f.Webhook.Configuration)
	}
}

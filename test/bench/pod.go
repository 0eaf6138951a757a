package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// noScheduler is a scheduler that does not exist: pods that are stored wait for it, so
// that the real one does not compete for the processors.
const noScheduler = "bench-none"

// teamTaint is one that the pod tolerates. Another one makes it a pod that the product
// has to decide on anew.
const teamTaint = "example.com/team-shop"

// benchPod is the pod that is created: an application with a proxy and a log shipper
// beside it, as Helm and a mesh leave it, between 7 and 8 KB. Its service account makes
// the API server add a token's volume under a random name.
func benchPod() *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				"app.kubernetes.io/component":  "api",
				"app.kubernetes.io/instance":   "shop-prod",
				"app.kubernetes.io/managed-by": "Helm",
				"app.kubernetes.io/name":       "shop",
				"app.kubernetes.io/part-of":    "shop",
				"app.kubernetes.io/version":    "2.31.4",
			},
			Annotations: map[string]string{
				"checksum/config":                         "3f0a6f0e2b7d3c9a8e1d5f4b6c7a8e9d0f1a2b3c4d5e6f708192a3b4c5d6e7f8",
				"kubectl.kubernetes.io/default-container": "app",
				"prometheus.io/port":                      "9090",
				"prometheus.io/scrape":                    "true",
			},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			SchedulerName:      noScheduler,
			NodeSelector:       map[string]string{"kubernetes.io/os": "linux"},
			Tolerations:        []corev1.Toleration{{Key: teamTaint, Operator: corev1.TolerationOpExists}},
			SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), FSGroup: ptr.To(int64(10001))},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "shop-config"},
				}}},
				{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("256Mi"))}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-prod"}},
			}},
		},
	}
	for _, c := range []struct {
		name, image    string
		settings, port int
	}{
		{"app", "registry.example.com/shop/api:2.31.4", 22, 8080},
		{"proxy", "registry.example.com/mesh/proxy:1.28.0", 16, 15001},
		{"log-shipper", "registry.example.com/obs/shipper:4.1.2", 10, 2020},
	} {
		pod.Spec.Containers = append(pod.Spec.Containers, container(c.name, c.image, c.settings, c.port))
	}
	return pod
}

func container(name, image string, settings, port int) corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(int32(port))}},
			PeriodSeconds: 10, TimeoutSeconds: 2,
		}
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	c := corev1.Container{
		Name:  name,
		Image: image,
		Args:  []string{"--config=/etc/app/config.yaml", "--log-format=json", fmt.Sprintf("--listen=0.0.0.0:%d", port)},
		Ports: []corev1.ContainerPort{
			{Name: fmt.Sprintf("p%d", port), ContainerPort: int32(port)},
			{Name: fmt.Sprintf("p%d", port+1), ContainerPort: int32(port + 1)},
		},
		Env: []corev1.EnvVar{
			field("POD_NAME", "metadata.name"),
			field("POD_NAMESPACE", "metadata.namespace"),
			{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "shop"}, Key: name + "-password",
			}}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/app"}, {Name: "cache", MountPath: "/var/cache/app"}, {Name: "tmp", MountPath: "/tmp"},
		},
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		SecurityContext: &corev1.SecurityContext{
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			RunAsUser:                ptr.To(int64(10001)),
			RunAsNonRoot:             ptr.To(true),
			ReadOnlyRootFilesystem:   ptr.To(true),
			AllowPrivilegeEscalation: ptr.To(false),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for i := range settings {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%02d", i), Value: fmt.Sprintf("value-%s-%02d-xxxxxxxxxxxxxxxxxx", name, i)})
	}
	return c
}

package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// BenchmarkRoute routes a pod that has been decided on before: guard and patch.
func BenchmarkRoute(b *testing.B) {
	router, namespaces := newRouter(b)
	for _, name := range []string{"plain-untrusted", "plain-trusted", "asked-for-and-kept", "host-namespaces", "swap-gvisor-to-kata-fc"} {
		fixture := fixturePods(b)[name]
		in := policies.Input{Namespace: *namespaces[fixture.namespace], Pod: asPod(b, fixture.pod)}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := router.Route(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// largeReview is of the size that the API server sends for a pod of three containers, half
// of it managedFields. Copies differ in the name of the token's volume; another account makes
// another pod of it.
func largeReview(namespace string, copied int, account string) []byte {
	var containers, managed []string
	for i := range 3 {
		var env []string
		for j := range 16 {
			env = append(env, fmt.Sprintf(`{"name":"SETTING_%02d","value":"value-%02d-xxxxxxxxxxxxxxxxxxxx"}`, j, j))
			managed = append(managed, fmt.Sprintf(`"k:{\"name\":\"SETTING_%02d\",\"container\":\"%d\"}":{".":{},"f:name":{},"f:value":{},"f:valueFrom":{".":{},"f:fieldRef":{},"f:secretKeyRef":{}}}`, j, i))
		}
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"registry.example.com/shop/api:1","args":["--config=/etc/app/config.yaml","--listen=0.0.0.0:8080"],`+
			`"ports":[{"name":"p8080","containerPort":8080,"protocol":"TCP"}],"env":[%s],`+
			`"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},`+
			`"volumeMounts":[{"name":"config","mountPath":"/etc/app"},{"name":"kube-api-access-%05d","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],`+
			`"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":2,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},`+
			`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent",`+
			`"securityContext":{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"allowPrivilegeEscalation":false}}`, i, strings.Join(env, ","), copied))
	}
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-%d","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"resource":{"group":"","version":"v1","resource":"pods"},"requestKind":{"group":"","version":"v1","kind":"Pod"},"namespace":%q,"operation":"CREATE",`+
		`"userInfo":{"username":"system:serviceaccount:kube-system:replicaset-controller","groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"]},`+
		`"object":{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"api-7d4f9c-","namespace":%q,"labels":{"app":"api","pod-template-hash":"7d4f9c"},`+
		`"annotations":{"prometheus.io/scrape":"true"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"api-7d4f9c","uid":"x","controller":true}],`+
		`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}}}]},`+
		`"spec":{"volumes":[{"name":"config","configMap":{"name":"api","defaultMode":420}},{"name":"kube-api-access-%05d","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],"defaultMode":420}}],`+
		`"containers":[%s],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","nodeSelector":{"kubernetes.io/arch":"amd64"},"serviceAccountName":%q,`+
		`"securityContext":{"runAsUser":1000},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},`+
		`{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{}},`+
		`"oldObject":null,"dryRun":false,"options":{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}`,
		copied, namespace, namespace, strings.Join(managed, ","), copied, strings.Join(containers, ","), account)
}

// BenchmarkMutatePod answers whole reviews: copies of one pod, and pods of which each has
// something of its own that the policy reads.
func BenchmarkMutatePod(b *testing.B) {
	for _, namespace := range []string{"untrusted", "trusted"} {
		for name, account := range map[string]func(i int) string{
			"remembered": func(int) string { return "api" },
			"new":        strconv.Itoa,
		} {
			b.Run(namespace+"/"+name, func(b *testing.B) {
				handler, _ := newHandler(b)
				endpoint := &Endpoint{Handler: handler, Log: logr.Discard()}
				bodies := make([][]byte, 2000)
				for i := range bodies {
					bodies[i] = largeReview(namespace, i, account(i))
				}
				i := 0
				b.SetBytes(int64(len(bodies[0])))
				b.ReportAllocs()
				for b.Loop() {
					i++
					if i%len(bodies) == 0 {
						b.StopTimer()
						if err := handler.Router.Engine.Load(b.Context(), policies.Shipped(), policies.DefaultConfig()); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
					}
					recorder := httptest.NewRecorder()
					endpoint.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, MutatePodPath, bytes.NewReader(bodies[i%len(bodies)])))
					if recorder.Code != http.StatusOK || recorder.Body.Len() < 100 {
						b.Fatal(recorder.Body)
					}
				}
			})
		}
	}
}

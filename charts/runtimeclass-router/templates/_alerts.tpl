{{- /* The alerts. docs/admins.md has them in a table; a test fires each. */}}
{{- define "router.alerts" -}}
{{- $decisions := "runtimeclass_router_decisions_total" }}
{{- $untrusted := include "router.leastTrusted" . }}
{{- /* Half of what a decision may take, in seconds. The histogram tells nothing apart above 2.5. */}}
{{- $slow := min (div (sub (mul .Values.webhook.timeoutSeconds 1000) 500) 2) 2000 }}
alerts:
- alert: RuntimeClassRouterAbsent
  expr: absent(runtimeclass_router_policy_info)
  for: 5m
  labels: {severity: critical}
  annotations:
    summary: No replica of runtimeclass-router reports a policy.
    description: With failurePolicy Fail no pod can be created outside of exempt namespaces. If pods are created, the metrics are not scraped.
- alert: RuntimeClassRouterNotArmed
  expr: max(runtimeclass_router_armed) < 1
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: The API server is not told to ask runtimeclass-router about pods.
    description: Nothing is routed. The log of the replicas says what they wait for.
- alert: RuntimeClassRouterCertificateExpires
  expr: min by (certificate) (runtimeclass_router_certificate_expiry_timestamp_seconds) - time() < 21 * 86400
  labels: {severity: critical}
  annotations:
    summary: The certificate of runtimeclass-router ({{ "{{ $labels.certificate }}" }}) expires in less than 21 days.
    description: It should have been renewed long before. When it expires, the API server takes no answer, and does what failurePolicy says.
- alert: RuntimeClassRouterPolicyErrors
  expr: sum by (kind) (increase(runtimeclass_router_policy_errors_total[10m])) > 0
  labels: {severity: critical}
  annotations:
    summary: The policy of runtimeclass-router fails ({{ "{{ $labels.kind }}" }}).
    description: In mode enforce each failure is a pod that was not created. The log has the pod's namespace and the error.
- alert: RuntimeClassRouterErrors
  expr: sum by (kind) (increase(runtimeclass_router_errors_total{kind!~"busy|policy|undecodable"}[10m])) > 0
  for: 5m
  labels: {severity: warning}
  annotations:
    summary: runtimeclass-router answers with errors ({{ "{{ $labels.kind }}" }}).
    description: In mode enforce each one is a pod that was not created.
- alert: RuntimeClassRouterStale
  expr: max by (of) (runtimeclass_router_faults) > 0
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: What runtimeclass-router was given is not in force ({{ "{{ $labels.of }}" }}).
    description: The last good policy, bundle or configuration is in force instead. /statusz on the metrics port says why.
- alert: RuntimeClassRouterRevisionsDiffer
  expr: count(count by (revision) (runtimeclass_router_policy_info)) > 1
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: The replicas of runtimeclass-router decide by different policies.
    description: One of them does not load what the others have. /statusz on the metrics port says why.
- alert: RuntimeClassRouterSlow
  expr: histogram_quantile(0.99, sum by (le) (rate(runtimeclass_router_decision_duration_seconds_bucket[5m]))) > {{ divf $slow 1000 }}
  for: 10m
  labels: {severity: warning}
  annotations:
    summary: Decisions of runtimeclass-router come close to the timeout.
    description: One in a hundred takes more than {{ divf $slow 1000 }} s. The API server waits {{ .Values.webhook.timeoutSeconds }} s, and then does what failurePolicy says.
- alert: RuntimeClassRouterDenialsJump
  expr: >-
    sum(increase({{ $decisions }}{action="deny",mode="enforce"}[15m])) > 10
    and sum(rate({{ $decisions }}{action="deny",mode="enforce"}[15m]))
    > 3 * (sum(rate({{ $decisions }}{action="deny",mode="enforce"}[1d] offset 15m)) or vector(0))
  labels: {severity: warning}
  annotations:
    summary: runtimeclass-router refuses far more pods than it did the day before.
    description: A namespace was labelled, a policy changed, or a workload that no sandbox can run is retried. The audit log has the reasons.
- alert: RuntimeClassRouterUntrustedNotSandboxed
  expr: >-
    sum(increase({{ $decisions }}{trust={{ $untrusted | quote }},action!="deny"}[1h])) > 0
    unless sum(increase({{ $decisions }}{trust={{ $untrusted | quote }},mode="enforce",action=~"route|keep"}[1h])) > 0
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: Pods of trust {{ $untrusted }} are let in, and none of them gets a sandbox.
    description: Their namespaces are in mode warn or audit, or exceptions cover them all. It is so after an installation, until namespaces are labelled.
- alert: RuntimeClassRouterUndone
  expr: sum(increase(runtimeclass_router_validations_total{resource="pods",mode="enforce",outcome="deny"}[15m])) > 0
  labels: {severity: warning}
  annotations:
    summary: Pods are refused that were changed after they were routed.
    description: Another webhook undoes the route, the mutating webhook was not asked, or somebody adds ephemeral containers that the sandbox cannot have.
- alert: RuntimeClassRouterBelowFloor
  expr: max(runtimeclass_router_audit_pods{finding="below-floor",mode="enforce"}) > 0
  for: 15m
  labels: {severity: warning}
  annotations:
    summary: Pods run below the floor of their trust.
    description: They are older than a label, a class or the product. The command `runtimeclass-router audit` lists them; delete them to have them routed anew.
- alert: RuntimeClassRouterExceptionExpires
  expr: min by (exception) (runtimeclass_router_exception_expiry_timestamp_seconds) - time() < 14 * 86400
  labels: {severity: warning}
  annotations:
    summary: The exception {{ "{{ $labels.exception }}" }} ends in less than 14 days, or has ended.
    description: From then on its pods are judged as any others of their namespace. Prolong it in router.exceptions, or remove it.
- alert: RuntimeClassRouterWatchSilent
  expr: max by (resource) (runtimeclass_router_watch_age_seconds) > 120
  for: 1m
  labels: {severity: warning}
  annotations:
    summary: runtimeclass-router hears nothing of {{ "{{ $labels.resource }}" }}.
    description: It decides by what it heard last. From three minutes on the replica is not ready.
{{- end }}

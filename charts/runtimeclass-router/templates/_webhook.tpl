{{- /* How the API server reaches a path of the webhook. Takes a list of the root context and the path. */}}
{{- define "router.clientConfig" -}}
{{- $root := index . 0 }}
{{- $path := index . 1 }}
{{- with $root.Values.webhook }}
{{- if .url -}}
url: {{ print (trimSuffix "/mutate-pod" .url) $path | quote }}
{{- with .caBundle }}
caBundle: {{ . | quote }}
{{- end }}
{{- else -}}
# But in mode secret, caBundle is injected, and not rendered, so that an upgrade leaves it alone.
{{- if eq $root.Values.certs.mode "secret" }}
caBundle: {{ $root.Values.certs.caBundle | quote }}
{{- end }}
service:
  name: {{ include "router.fullname" $root }}
  namespace: {{ $root.Release.Namespace | quote }}
  path: {{ $path }}
  port: 443
{{- end }}
{{- end }}
{{- end }}

{{- /* Annotations of both webhook configurations. */}}
{{- define "router.webhookAnnotations" -}}
{{- with .Values.webhook.annotations }}
{{- toYaml . }}
{{- end }}
{{- if eq .Values.certs.mode "certManager" }}
cert-manager.io/inject-ca-from: {{ printf "%s/%s" .Release.Namespace (include "router.fullname" .) | quote }}
{{- end }}
{{- end }}

{{- /* Which pods a webhook is asked about. Takes a list of the root context, and whether it is the one for pods that lower
themselves in trusted namespaces, which the other leaves out with webhook.skipTrusted. Both are always rendered: one that
is dropped from the chart could not be removed by server-side apply (docs/decisions/0010-arming.md). */}}
{{- define "router.podSelection" -}}
{{- $root := index . 0 }}
{{- $lowered := index . 1 }}
{{- $skip := $root.Values.webhook.skipTrusted }}
{{- $conditions := $root.Values.webhook.matchConditions }}
{{- if and $lowered (not $skip) }}
{{- $conditions = list (dict "name" "asked-for-by-the-other" "expression" "false") }}
{{- end }}
{{- with $conditions -}}
matchConditions: {{- toYaml . | nindent 0 }}
{{ end -}}
{{- $label := "runtimeclass-router.io/trust" }}
{{- $most := list (include "router.mostTrusted" $root) }}
{{- $selector := include "router.namespaceSelector" $root | fromYaml }}
{{- if or $skip $lowered }}
{{- $trusted := dict "key" $label "operator" (ternary "In" "NotIn" $lowered) "values" $most }}
{{- $_ := set $selector "matchExpressions" (append $selector.matchExpressions $trusted) }}
{{- end -}}
namespaceSelector: {{- toYaml $selector | nindent 2 }}
{{- if $lowered }}
objectSelector:
  matchExpressions:
  - {key: {{ $label }}, operator: Exists}
  - {key: {{ $label }}, operator: NotIn, values: {{ toJson $most }}}
{{- else }}
# Every pod: a label that opted out or in would be the pod's author's to set.
objectSelector: {}
{{- end }}
{{- end }}

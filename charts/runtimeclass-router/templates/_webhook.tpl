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

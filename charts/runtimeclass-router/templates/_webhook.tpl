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
# The product injects caBundle. It is not rendered, so that an upgrade leaves it alone.
service:
  name: {{ include "router.fullname" $root }}
  namespace: {{ $root.Release.Namespace | quote }}
  path: {{ $path }}
  port: 443
{{- end }}
{{- end }}
{{- end }}

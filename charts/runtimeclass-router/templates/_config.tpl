{{- /* The file that `serve --config` reads. */}}
{{- define "router.config" -}}
apiVersion: runtimeclass-router.io/v1alpha1
kind: RouterConfiguration
webhook:
  port: {{ .Values.webhook.port }}
  deadline: {{ sub (mul .Values.webhook.timeoutSeconds 1000) 500 }}ms
  drain: {{ .Values.webhook.drainSeconds }}s
metrics:
  bindAddress: ":8080"
health:
  bindAddress: ":8081"
certs:
  mode: self
  directory: /etc/runtimeclass-router/tls
  namespace: {{ .Release.Namespace | quote }}
  secretName: {{ include "router.fullname" . }}-tls
  serviceName: {{ include "router.fullname" . }}
  webhookConfiguration: {{ include "router.fullname" . }}
guards:
  namespace: {{ .Release.Namespace | quote }}
  serviceAccount: {{ include "router.fullname" . }}-guards
  fallback: {{ .Values.fallback.runtimeClassName | quote }}
log:
  format: {{ .Values.log.format }}
  level: {{ .Values.log.level }}
policies:
  mode: {{ .Values.policies.mode }}
  {{- if .Values.policies.files }}
  directory: /etc/runtimeclass-router/policies
  {{- end }}
router: {{- toYaml .Values.router | nindent 2 }}
{{- end }}

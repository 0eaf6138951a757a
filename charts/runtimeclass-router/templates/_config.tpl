{{- /* The file that `serve --config` reads. */}}
{{- define "router.config" -}}
apiVersion: runtimeclass-router.io/v1alpha1
kind: RouterConfiguration
webhook:
  port: {{ .Values.webhook.port }}
  deadline: {{ sub (mul .Values.webhook.timeoutSeconds 1000) 500 }}ms
  drain: {{ .Values.webhook.drainSeconds }}s
  configuration: {{ include "router.fullname" . }}
metrics:
  bindAddress: ":{{ .Values.metrics.port }}"
health:
  bindAddress: ":{{ .Values.health.port }}"
certs:
  mode: {{ ternary "self" "secret" (eq .Values.certs.mode "self") }}
  namespace: {{ .Release.Namespace | quote }}
  secretName: {{ include "router.certSecret" . | quote }}
  serviceName: {{ include "router.fullname" . }}
guards:
  namespace: {{ .Release.Namespace | quote }}
  serviceAccount: {{ include "router.fullname" . }}-guards
  fallback: {{ .Values.fallback.runtimeClassName | quote }}
{{- with .Values.audit }}
{{- if .interval }}
audit:
  {{- toYaml . | nindent 2 }}
  exemptNamespaces: {{- concat (list "kube-system" "kube-node-lease" $.Release.Namespace) $.Values.exemptNamespaces | uniq | toYaml | nindent 2 }}
  lease:
    namespace: {{ $.Release.Namespace | quote }}
    name: {{ include "router.fullname" $ }}-audit
{{- end }}
{{- end }}
log:
  format: {{ .Values.log.format }}
  level: {{ .Values.log.level }}
{{- with .Values.decisionLog }}
decisionLog:
  {{- with omit . "upload" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .upload }}
  upload:
    {{- with omit . "credentialsSecret" "caConfigMap" }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if .credentialsSecret }}
    credentialsDirectory: /etc/runtimeclass-router/upload-credentials
    {{- end }}
    {{- if .caConfigMap }}
    caFile: /etc/runtimeclass-router/upload-ca/ca.crt
    {{- end }}
  {{- end }}
{{- end }}
policies:
  mode: {{ .Values.policies.mode }}
  configMaps:
    namespace: {{ .Release.Namespace | quote }}
  {{- with .Values.policies.bundle }}
  {{- if .url }}
  bundle:
    url: {{ .url | quote }}
    pollInterval: {{ .pollInterval | quote }}
    persistDirectory: /var/lib/runtimeclass-router
    {{- if .unsigned }}
    unsigned: true
    {{- else }}
    keysDirectory: /etc/runtimeclass-router/bundle-keys
    algorithm: {{ .algorithm | quote }}
    {{- end }}
    {{- if .credentialsSecret }}
    credentialsDirectory: /etc/runtimeclass-router/bundle-credentials
    {{- end }}
    {{- if .caConfigMap }}
    caFile: /etc/runtimeclass-router/bundle-ca/ca.crt
    {{- end }}
  {{- end }}
  {{- end }}
{{- if .Values.policies.shadow }}
shadow:
  mode: {{ .Values.policies.mode }}
  configMaps:
    namespace: {{ .Release.Namespace | quote }}
{{- end }}
router: {{- include "router.settings" . | nindent 2 }}
{{- end }}

{{- /* What of the file takes a restart. The rest is read again while the product runs. */}}
{{- define "router.restartConfig" -}}
{{- $config := include "router.config" . | fromYaml }}
{{- $_ := unset $config "router" }}
{{- $_ := unset $config.policies "mode" }}
{{- toJson $config }}
{{- end }}

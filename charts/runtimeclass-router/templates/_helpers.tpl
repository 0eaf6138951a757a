{{- /* The name of every object: the release's, with the chart's name in it. Short enough for the suffixes
that templates add and for a DNS label, which a Service's name is. */}}
{{- define "router.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $full .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "router.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "router.labels" -}}
{{ include "router.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: webhook
app.kubernetes.io/part-of: runtimeclass-router
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "router.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry }}
{{- with .Values.image -}}
{{ with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "router.imagePullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets | uniq -}}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /* "true" if a value that is auto, true or false is on. Takes a list of the value and what auto stands for. */}}
{{- define "router.switch" -}}
{{- $given := toString (index . 0) }}
{{- if or (eq $given "true") (and (eq $given "auto") (index . 1)) }}true{{ end }}
{{- end }}

{{- /* The pods' security context. OpenShift assigns user and groups by namespace, and refuses others. */}}
{{- define "router.podSecurityContext" -}}
{{- $context := .Values.podSecurityContext }}
{{- if include "router.switch" (list .Values.openshift (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}
{{- end }}
{{- toYaml $context }}
{{- end }}

{{- /* The preset's file, which holds what is true of a platform. */}}
{{- define "router.preset" -}}
{{- .Files.Get (printf "files/presets/%s.yaml" .Values.preset) }}
{{- end }}

{{- /* The RuntimeClasses that the release creates, or expects: those of the values, else the preset's. */}}
{{- define "router.runtimeClasses" -}}
{{- $preset := include "router.preset" . | fromYaml }}
{{- toYaml (dict "list" (default $preset.runtimeClasses .Values.runtimeClasses.list)) }}
{{- end }}

{{- /* The configuration's section router. A key of the values replaces the preset's, as it does the default. */}}
{{- define "router.settings" -}}
{{- $preset := include "router.preset" . | fromYaml }}
{{- $settings := dict }}
{{- range $key, $value := default dict $preset.router }}{{ $_ := set $settings $key $value }}{{ end }}
{{- range $key, $value := .Values.router }}{{ $_ := set $settings $key $value }}{{ end }}
{{- toYaml $settings }}
{{- end }}

{{- /* The name of the least trusted level. */}}
{{- define "router.leastTrusted" -}}
{{- $levels := get (include "router.settings" . | fromYaml) "levels" }}
{{- if $levels }}{{ (last $levels).name }}{{ else }}untrusted{{ end }}
{{- end }}

{{- /* The name of the most trusted level, whose namespaces webhook.skipTrusted leaves out: it must take no sandbox. */}}
{{- define "router.mostTrusted" -}}
{{- $levels := get (include "router.settings" . | fromYaml) "levels" }}
{{- $level := default (dict "name" "trusted") (first (default list $levels)) }}
{{- if and .Values.webhook.skipTrusted (ne (default "host-kernel" $level.floor) "host-kernel") }}
{{- fail (printf "webhook.skipTrusted: true: level %s of router.levels takes a sandbox, and its pods would be created without; set it to false" $level.name) }}
{{- end }}
{{- $level.name }}
{{- end }}

{{- /* Refuses a kind that the cluster does not serve. Takes a list of the root context, the value that asks for it, and the
API version and kind. */}}
{{- define "router.served" -}}
{{- $root := index . 0 }}
{{- if not ($root.Capabilities.APIVersions.Has (index . 2)) }}
{{- fail (printf "%s: this cluster does not serve %s (helm template takes --api-versions %s); install what defines it first" (index . 1) (index . 2) (index . 2)) }}
{{- end }}
{{- end }}

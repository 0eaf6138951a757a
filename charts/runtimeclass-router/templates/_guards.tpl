{{- /* The namespaces whose pods nobody looks at: the webhook, the backstop and the fallback alike. By the label that
the API server sets to the namespace's name, never by one that a tenant can set. */}}
{{- define "router.namespaceSelector" -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{- concat (list "kube-system" "kube-node-lease" .Release.Namespace) .Values.exemptNamespaces | uniq | toYaml | nindent 2 }}
{{- end }}

{{- /* "true" if the fallback is on, else empty. */}}
{{- define "router.fallback" -}}
{{- $enabled := toString .Values.fallback.enabled }}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- if and (eq $enabled "true") (not $served) }}
{{- fail "fallback.enabled: true: this cluster does not serve admissionregistration.k8s.io/v1 MutatingAdmissionPolicy (Kubernetes 1.36 and later do; helm template takes --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy); set auto or false" }}
{{- end }}
{{- if and $served (ne $enabled "false") }}true{{ end }}
{{- end }}

{{- /* What of a binding says where the parameters are. A policy that finds none does nothing. */}}
{{- define "router.paramRef" -}}
paramRef:
  name: {{ include "router.fullname" . }}-guards
  namespace: {{ .Release.Namespace | quote }}
  parameterNotFoundAction: Allow
{{- end }}

{{- /* Variables of the policies on pods. The trust and the mode of a pod, as webhook/trust.go has them. */}}
{{- define "router.podVariables" -}}
# Until the product has written them, the parameters have no data, and nothing is judged.
- name: written
  expression: has(params.metadata.annotations) && 'guards.runtimeclass-router.io/levels' in params.metadata.annotations
- name: levels
  expression: params.metadata.annotations['guards.runtimeclass-router.io/levels'].split('\n')
- name: namespaceLabels
  expression: >-
    has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}
- name: annotations
  expression: object.metadata.?annotations.orValue({})
- name: allowed
  expression: >-
    string(variables.namespaceLabels[?'runtimeclass-router.io/trust'].orValue(params.metadata.annotations['guards.runtimeclass-router.io/default-trust']))
- name: lowered
  expression: >-
    string(object.metadata.?labels[?'runtimeclass-router.io/trust'].orValue(variables.levels[0]))
# The less trusted of both; an unknown level is the least trusted.
- name: level
  expression: >-
    variables.levels[[variables.allowed, variables.lowered].map(l, l in variables.levels ? variables.levels.indexOf(l) : size(variables.levels) - 1).max()]
- name: enforced
  expression: >-
    'runtimeclass-router.io/mode' in variables.namespaceLabels
      ? !(variables.namespaceLabels['runtimeclass-router.io/mode'] in ['warn', 'audit'])
      : 'runtimeclass-router.io/trust' in variables.namespaceLabels || params.metadata.annotations['guards.runtimeclass-router.io/default-mode'] == 'enforce'
# A static pod that a node announces. The annotation alone proves nothing.
- name: mirror
  expression: >-
    'kubernetes.io/config.mirror' in variables.annotations && 'system:nodes' in request.userInfo.?groups.orValue([])
# Bound to a virtual node that isolates by itself, where no class is honoured.
- name: virtual
  expression: >-
    object.spec.?nodeName.orValue('') == '' && object.spec.?runtimeClassName.orValue('') == ''
      && params.metadata.annotations[?'guards.runtimeclass-router.io/virtual-nodes'].orValue('').split('\n').exists(v, v != '' && v.split(',').all(b,
        b == 'scheduler:' + object.spec.?schedulerName.orValue('')
          || object.spec.?nodeSelector.orValue({}).exists(k, k + '=' + object.spec.nodeSelector[k] == b)))
- name: sandboxed
  expression: >-
    variables.written && !variables.virtual && variables.enforced && !variables.mirror && !(variables.level in params.metadata.annotations['guards.runtimeclass-router.io/open-levels'].split('\n'))
{{- end }}

{{- /* The Secret with the certificate: ours, cert-manager's, or the one that is named. */}}
{{- define "router.certSecret" -}}
{{- with .Values.certs }}
{{- if not (has .mode (list "self" "certManager" "secret")) }}
{{- fail (printf "certs.mode: %q: want self, certManager or secret" .mode) }}
{{- end }}
{{- if and (eq .mode "secret") (not .secretName) }}
{{- fail "certs.secretName: certs.mode: secret takes the name of the Secret that holds tls.crt and tls.key" }}
{{- end }}
{{- if and (eq .mode "secret") (not .caBundle) (not $.Values.webhook.url) }}
{{- fail "certs.caBundle: certs.mode: secret takes the CA that the API server verifies the certificate with, PEM in base64" }}
{{- end }}
{{- if and (ne .mode "secret") (or .secretName .caBundle) }}
{{- fail (printf "certs.secretName and certs.caBundle are for certs.mode: secret, and it is %s" .mode) }}
{{- end }}
{{- if .issuerRef }}
{{- if ne .mode "certManager" }}
{{- fail (printf "certs.issuerRef is for certs.mode: certManager, and it is %s" .mode) }}
{{- end }}
{{- end }}
{{- if eq .mode "secret" }}{{ .secretName }}{{ else }}{{ include "router.fullname" $ }}-tls{{ end }}
{{- end }}
{{- end }}

{{/*
Certificates that the chart makes. What an earlier release made is found by lookup and kept, so an upgrade changes a
certificate only when the rest of its life is short, its name or its issuer is another. Without a cluster (helm template)
lookup finds nothing, and all of them are new.
*/}}

{{- define "haptic.timeLayout" -}}2006-01-02T15:04:05Z{{- end -}}

{{/* The moment some days from now, in UTC. */}}
{{- define "haptic.inDays" -}}
{{- dateInZone (include "haptic.timeLayout" .) (now | dateModify (printf "+%dh" (mul 24 .))) "UTC" -}}
{{- end -}}

{{/* Annotations that tell what a made certificate is: dict "days" "name" "issuer". */}}
{{- define "haptic.certificateAnnotations" -}}
haproxy-haptic.org/not-after: {{ include "haptic.inDays" .days | quote }}
haproxy-haptic.org/names: {{ .name | quote }}
{{- with .issuer }}
haproxy-haptic.org/issuer: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* 'true' if a Secret that was looked up can stay: dict "secret" "days" (that must be left) "name" "issuer". */}}
{{- define "haptic.isKept" -}}
{{- $annotations := dig "metadata" "annotations" dict .secret -}}
{{- $notAfter := get $annotations "haproxy-haptic.org/not-after" -}}
{{- if and $notAfter (dig "data" "tls.crt" "" .secret) (dig "data" "tls.key" "" .secret) -}}
{{- $left := sub (toDate (include "haptic.timeLayout" .) $notAfter | unixEpoch | int64) (now | unixEpoch | int64) -}}
{{- $isLong := gt $left (mul 86400 .days) -}}
{{- $isNamed := eq (get $annotations "haproxy-haptic.org/names") .name -}}
{{- $isIssued := eq (get $annotations "haproxy-haptic.org/issuer" | default "") (.issuer | default "") -}}
{{- if and $isLong $isNamed $isIssued -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* A TLS Secret: dict "root" "component" "name" "annotations" "data" (base64). */}}
{{- define "haptic.tlsSecret" -}}
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  {{- include "haptic.namespacedMetadata" . | nindent 2 }}
data:
  {{- toYaml .data | nindent 2 }}
{{- end -}}

{{/* The Secret of one side: dict "root" "component" "secret" (its name) "dns" "ca" "issuer" "bundle". */}}
{{- define "haptic.leafSecret" -}}
{{- $tls := .root.Values.agent.tls -}}
{{- $before := lookup "v1" "Secret" .root.Release.Namespace .secret | default dict -}}
{{- $annotations := dig "metadata" "annotations" dict $before -}}
{{- $data := dict -}}
{{- if include "haptic.isKept" (dict "secret" $before "days" $tls.renewBeforeDays "name" .dns "issuer" .issuer) -}}
{{- $annotations = pick $annotations "haproxy-haptic.org/not-after" "haproxy-haptic.org/names" "haproxy-haptic.org/issuer" -}}
{{- $data = pick $before.data "tls.crt" "tls.key" -}}
{{- else -}}
{{- $annotations = include "haptic.certificateAnnotations" (dict "days" $tls.certValidityDays "name" .dns "issuer" .issuer) | fromYaml -}}
{{- $pair := genSignedCertWithKey .dns nil (list .dns) (int $tls.certValidityDays) .ca (genPrivateKey "ecdsa") -}}
{{- $data = dict "tls.crt" (b64enc $pair.Cert) "tls.key" (b64enc $pair.Key) -}}
{{- end -}}
{{- $_ := set $data "ca.crt" .bundle -}}
{{- include "haptic.tlsSecret" (dict "root" .root "component" .component "name" .secret "annotations" $annotations "data" $data) }}
{{- end -}}

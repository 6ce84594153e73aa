{{/* Parts that the pods of controller and HAProxy share. */}}

{{/* Address and port to listen on: list .Values.listenAddress 8080. */}}
{{- define "haptic.listen" -}}
{{- $host := index . 0 -}}
{{- ternary (printf "[%s]" $host) $host (contains ":" $host) }}:{{ index . 1 | int }}
{{- end -}}

{{/* Spec fields that say where a pod runs: dict "root" "component" "values" (of the component). */}}
{{- define "haptic.scheduling" -}}
{{- $values := .values -}}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" }}
{{- with get $values $field }}
{{ $field }}:{{ if kindIs "string" . }} {{ . | quote }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
topologySpreadConstraints:
{{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "haptic.selectorLabels" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end -}}

{{/* A probe: dict "path" "port" "values". */}}
{{- define "haptic.probe" -}}
{{- mergeOverwrite (dict "httpGet" (dict "path" .path "port" .port)) .values | toYaml -}}
{{- end -}}

{{/* A PodDisruptionBudget: dict "root" "component" "name" "values" "replicas". */}}
{{- define "haptic.podDisruptionBudget" -}}
{{- if and .values.enabled (gt (int .replicas) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "haptic.namespacedMetadata" . | nindent 2 }}
spec:
  {{- if not (kindIs "invalid" .values.maxUnavailable) }}
  maxUnavailable: {{ .values.maxUnavailable }}
  {{- else }}
  minAvailable: {{ .values.minAvailable }}
  {{- end }}
  # Pods that serve nobody do not keep a node from being emptied.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "haptic.selectorLabels" . | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* DNS, in an egress rule of a NetworkPolicy. */}}
{{- define "haptic.dnsEgress" -}}
- ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
{{- end -}}

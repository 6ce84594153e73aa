{{/* Names and labels. */}}

{{- define "haptic.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Prefix of all names; short enough for every suffix. */}}
{{- define "haptic.fullname" -}}
{{- $name := include "haptic.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Name of objects outside the release's namespace, which other releases may have as well. */}}
{{- define "haptic.outsideName" -}}
{{- printf "%s-%s" .Release.Namespace (include "haptic.fullname" .) -}}
{{- end -}}

{{- define "haptic.controllerName" -}}{{ include "haptic.fullname" . }}-controller{{- end -}}
{{- define "haptic.haproxyName" -}}{{ include "haptic.fullname" . }}-haproxy{{- end -}}
{{- define "haptic.metricsServiceName" -}}{{ include "haptic.fullname" . }}-haproxy-metrics{{- end -}}

{{- define "haptic.issuerSecret" -}}
{{- .Values.agent.tls.issuerSecretName | default (printf "%s-agent-ca" (include "haptic.fullname" .)) -}}
{{- end -}}
{{- define "haptic.serverSecret" -}}
{{- .Values.agent.tls.serverSecretName | default (printf "%s-agent-server" (include "haptic.fullname" .)) -}}
{{- end -}}
{{- define "haptic.clientSecret" -}}
{{- .Values.agent.tls.clientSecretName | default (printf "%s-agent-client" (include "haptic.fullname" .)) -}}
{{- end -}}

{{- define "haptic.controllerServiceAccount" -}}
{{- with .Values.serviceAccount -}}
{{- .name | default (ternary (include "haptic.controllerName" $) "default" .create) -}}
{{- end -}}
{{- end -}}
{{- define "haptic.haproxyServiceAccount" -}}
{{- with .Values.haproxy.serviceAccount -}}
{{- .name | default (ternary (include "haptic.haproxyName" $) "default" .create) -}}
{{- end -}}
{{- end -}}

{{- define "haptic.leaseName" -}}
{{- .Values.controller.config.controller.leaderElection.leaseName | default .Values.controller.crdName -}}
{{- end -}}

{{- define "haptic.publishService" -}}
{{- .Values.controller.publishService | default (ternary (include "haptic.haproxyName" .) "" .Values.haproxy.enabled) -}}
{{- end -}}

{{/* What selects the pods of a component: dict "root" $ "component" "controller". */}}
{{- define "haptic.selectorLabels" -}}
app.kubernetes.io/name: {{ include "haptic.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "haptic.labels" -}}
{{- $own := include "haptic.selectorLabels" . | fromYaml -}}
{{- $chart := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_"))
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
-}}
{{- mergeOverwrite (deepCopy .root.Values.commonLabels) $chart $own | toYaml -}}
{{- end -}}

{{/* metadata without namespace: dict "root" "component" "name", and "labels", "annotations" of this object. */}}
{{- define "haptic.metadata" -}}
name: {{ .name }}
labels:
  {{- mergeOverwrite (deepCopy (.labels | default dict)) (include "haptic.labels" . | fromYaml) | toYaml | nindent 2 }}
{{- with mergeOverwrite (deepCopy .root.Values.commonAnnotations) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* metadata of an object in the release's namespace. */}}
{{- define "haptic.namespacedMetadata" -}}
{{ include "haptic.metadata" . }}
namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* dict "image" .Values.image "tag" "what an empty tag means". */}}
{{- define "haptic.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .tag) -}}
{{- end -}}
{{- end -}}

{{- define "haptic.controllerImage" -}}
{{- $tag := printf "%s-haproxy%s" .Chart.AppVersion .Values.haproxyVersion -}}
{{- include "haptic.image" (dict "image" .Values.image "tag" $tag) -}}
{{- end -}}

{{/*
What the controller watches, from the libraries that are on and from the values, as the rights it needs:

  cluster: [rule…]              everywhere, or without namespaces
  namespaces: {name: [rule…]}   in single namespaces

Members of an entry in the values replace those of a library, as in the controller.
*/}}
{{- define "haptic.watched" -}}
{{- $merged := dict -}}
{{- range .Files.Get "files/libraries.yaml" | fromYamlArray -}}
{{- if (get $.Values.controller.templateLibraries .name).enabled -}}
{{- range $key, $entry := .watchedResources -}}
{{- $_ := set $merged $key (mergeOverwrite (get $merged $key | default dict) (deepCopy $entry)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key, $entry := .Values.controller.config.watchedResources -}}
{{- $before := get $merged $key | default dict -}}
{{- if or (hasKey $entry "apiVersion") (hasKey $entry "apiVersions") -}}
{{- $before = omit $before "apiVersion" "apiVersions" -}}
{{- end -}}
{{- $_ := set $merged $key (mergeOverwrite $before (deepCopy $entry)) -}}
{{- end -}}
{{- $rights := dict -}}
{{- range $key, $entry := $merged -}}
{{- if not $entry.resources -}}
{{- fail (printf "controller.config.watchedResources.%s: resources is missing; write the plural, for example configmaps" $key) -}}
{{- end -}}
{{- $versions := $entry.apiVersions | default (list $entry.apiVersion) | compact -}}
{{- if not $versions -}}
{{- fail (printf "controller.config.watchedResources.%s: apiVersions is missing; write it like [networking.k8s.io/v1]" $key) -}}
{{- end -}}
{{- range $versions -}}
{{- $group := ternary (first (splitList "/" .)) "" (contains "/" .) -}}
{{- $right := get $rights (printf "%s/%s" $group $entry.resources) | default (dict "group" $group "resource" $entry.resources "namespaces" list) -}}
{{- $namespaces := include "haptic.watchedNamespaces" (list $ $group $entry) | fromYamlArray -}}
{{- $_ := set $right "namespaces" (concat $right.namespaces $namespaces | uniq | sortAlpha) -}}
{{- $_ := set $rights (printf "%s/%s" $group $entry.resources) $right -}}
{{- end -}}
{{- end -}}
{{- $cluster := list -}}
{{- $byNamespace := dict -}}
{{- range $key, $right := $rights -}}
{{- $rule := dict "apiGroups" (list $right.group) "resources" (list $right.resource) "verbs" (list "get" "list" "watch") -}}
{{- if has "*" $right.namespaces -}}
{{- $cluster = append $cluster $rule -}}
{{- else -}}
{{- range $right.namespaces -}}
{{- $_ := set $byNamespace . (append (get $byNamespace . | default list) $rule) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "cluster" $cluster "namespaces" $byNamespace | toYaml -}}
{{- end -}}

{{/* Namespaces in which one entry is watched, as a list; "*" is all of them: list root group entry. */}}
{{- define "haptic.watchedNamespaces" -}}
{{- $root := index . 0 -}}
{{- $entry := index . 2 -}}
{{- $known := list
  "/namespaces" "/nodes" "/persistentvolumes"
  "apiextensions.k8s.io/customresourcedefinitions"
  "gateway.networking.k8s.io/gatewayclasses"
  "networking.k8s.io/ingressclasses"
  "storage.k8s.io/storageclasses"
-}}
{{- if has (printf "%s/%s" (index . 1) $entry.resources) (concat $known $root.Values.rbac.clusterScopedResources) -}}
{{- list "*" | toYaml -}}
{{- else -}}
{{- $entry.namespaces | default $root.Values.watchNamespaces | default (list "*") | toYaml -}}
{{- end -}}
{{- end -}}

{{/* Whether a list of rules has a resource: list rules group resource; 'true' or ''. */}}
{{- define "haptic.hasRule" -}}
{{- $group := index . 1 -}}
{{- $resource := index . 2 -}}
{{- range index . 0 -}}
{{- if and (has $group .apiGroups) (has $resource .resources) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rights to write about watched objects, for one place: a list of the rules to watch them. */}}
{{- define "haptic.aboutWatched" -}}
{{- if include "haptic.hasRule" (list . "networking.k8s.io" "ingresses") -}}
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [patch]
{{ end -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* 'true' where resources of all namespaces are watched, else ''. */}}
{{- define "haptic.isClusterWide" -}}
{{- if not .Values.watchNamespaces -}}true{{- end -}}
{{- end -}}

{{/* Whole MiB of a memory quantity such as 1Gi, 512Mi, 1.5G or 268435456; fails for anything else. */}}
{{- define "haptic.mebibytes" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- $bytes := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- if or (eq $number "") (not (hasKey $bytes $unit)) -}}
{{- fail (printf "%s is no memory quantity this chart can read; write it like 512Mi or 2Gi" $text) -}}
{{- end -}}
{{- divf (mulf (float64 $number) (get $bytes $unit)) 1048576.0 | floor | int -}}
{{- end -}}

{{/* V8's heap in MiB: dict "given" 0 "resources" {} "share" 2; '' without a memory limit. */}}
{{- define "haptic.heap" -}}
{{- if .given -}}
{{- int .given -}}
{{- else -}}
{{- with dig "limits" "memory" "" .resources -}}
{{- div (include "haptic.mebibytes" . | int) $.share -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Options of V8: the young generation small, the old one inside the container's limit. */}}
{{- define "haptic.nodeOptions" -}}
{{- $heap := include "haptic.heap" . -}}
--max-semi-space-size=4{{ if $heap }} --max-old-space-size={{ $heap }}{{ end }}
{{- end -}}

{{/* Milliseconds of a duration in Go's notation, rounded up. */}}
{{- define "haptic.milliseconds" -}}
{{- $units := dict "ns" 0.000001 "us" 0.001 "µs" 0.001 "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ns|us|µs|ms|s|m|h)" (toString .) -1 -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{- $sum = addf $sum (mulf (float64 $number) (get $units (trimPrefix $number .))) -}}
{{- end -}}
{{- ceil $sum | int64 -}}
{{- end -}}

{{- /* What an engine asks for in a namespace of jobs. (its values) */ -}}
{{- define "engine.rules.jobs" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [create, get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [secrets] # what pods own
  verbs: [create, get, {{ if .prune }}list, {{ end }}patch, delete]
{{- if eq .specs.from "objects" }}
- apiGroups: [""]
  resources: [configmaps] # what pods own; get: whether a file has the job
  verbs: [create, get, patch, delete]
- apiGroups: [jobs.engine]
  resources: [jobspecs]
  verbs: [get, list, watch]
- apiGroups: [jobs.engine]
  resources: [jobdefaults]
  verbs: [list, watch]
- apiGroups: [jobs.engine]
  resources: [jobspecs/status] # which is the run record
  verbs: [update]
{{- else }}
- apiGroups: [""]
  resources: [configmaps] # what pods own, and the run records
  verbs: [create, get, list, watch, update, patch, delete]
- apiGroups: [jobs.engine]
  resources: [jobspecs] # whether an object has the job
  verbs: [get]
{{- end }}
{{- if .logs.volume }}
- apiGroups: [""]
  resources: [pods/log] # saved at the end of each attempt
  verbs: [get]
{{- end }}
{{- if .rights.quotas }}
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
{{- end }}
{{- if .rights.events }}
- apiGroups: [""]
  resources: [events]
  verbs: [{{ if dig "features" "events" true .config }}create, {{ end }}list]
{{- end }}
{{- end -}}

{{- define "engine.rules.lease" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list, create, update]
{{- end -}}

{{- /* (its values' rights) */ -}}
{{- define "engine.rules.cluster" -}}
{{- if .nodes -}}
- apiGroups: [""]
  resources: [nodes] # which have the image of a job whose registry is away
  verbs: [list]
{{ end -}}
{{- if .podsEverywhere -}}
- apiGroups: [""]
  resources: [pods] # of its source, where no spec is any more
  verbs: [list]
{{ end -}}
{{- if .recordsEverywhere -}}
- apiGroups: [""]
  resources: [configmaps] # the records of its source, where no spec is any more
  verbs: [list]
{{- end -}}
{{- end -}}

{{- /* What the cleaner asks for in a namespace. (its values, and whether jobs are `objects`) */ -}}
{{- define "engine.cleaner.rules" -}}
{{- $groups := dict -}}
{{- range .kinds -}}
{{- $parts := splitn "." 2 . -}}
{{- $group := default "" $parts._1 -}}
{{- $_ := set $groups $group (append (default list (get $groups $group)) $parts._0) -}}
{{- end -}}
{{- range $group, $resources := $groups }}
- apiGroups: [{{ $group | quote }}]
  resources: [{{ join ", " $resources }}]
  {{- if eq $.dryRun "client" }}
  verbs: [list]
  {{- else }}
  verbs: [list, get, delete] # get: to judge again what has changed since it was listed
  {{- end }}
{{- end }}
{{- if and (has "pods" .kinds) (eq .dryRun "none") }}
- apiGroups: [""]
  resources: [configmaps] # the outcome of a pod, in the record of its job
  verbs: [{{ if not (has "configmaps" .kinds) }}list, get, {{ end }}update]
{{- if .objects }}
- apiGroups: [jobs.engine]
  resources: [jobspecs] # the same of an object, in its status
  verbs: [get]
- apiGroups: [jobs.engine]
  resources: [jobspecs/status]
  verbs: [update]
{{- end }}
{{- end }}
{{- end -}}

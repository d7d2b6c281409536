{{- define "engine.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $default .Values.fullnameOverride | trunc 44 | trimSuffix "-" -}}
{{- end -}}

{{- define "engine.cleaner.fullname" -}}
{{ include "engine.fullname" . }}-cleaner
{{- end -}}

{{- /* What selects a component's pods; never changes. (root, component) */ -}}
{{- define "engine.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- /* (root, component) */ -}}
{{- define "engine.labels" -}}
{{- $root := index . 0 -}}
{{ include "engine.selectorLabels" . }}
app.kubernetes.io/version: {{ default $root.Chart.AppVersion $root.Values.image.tag | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (root, component, the component's values) */ -}}
{{- define "engine.podLabels" -}}
{{ include "engine.selectorLabels" . }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with (index . 2).podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (image, default tag) */ -}}
{{- define "engine.image" -}}
{{- $image := index . 0 -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default (index . 1) $image.tag }}{{ end -}}
{{- end -}}

{{- /* (the component's values, the component's name) */ -}}
{{- define "engine.serviceAccountName" -}}
{{- $account := (index . 0).serviceAccount -}}
{{- default ($account.create | ternary (index . 1) "default") $account.name -}}
{{- end -}}

{{- define "engine.serviceAccount" -}}
{{- /* (root, component, its values, its name) */ -}}
{{- $root := index . 0 -}}
{{- with index . 2 -}}
{{- if .serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "engine.serviceAccountName" (list . (index $ 3)) }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "engine.labels" (list $root (index $ 1)) | nindent 4 }}
  {{- with .serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false # its pods ask for the token themselves
{{- end }}
{{- end -}}
{{- end -}}

{{- /*
A role and its binding: of one namespace, or of the cluster where the namespace is "".
(root, component, service account, name, namespace, rules)
Roles of two releases may meet in one namespace, so each has its release's namespace in its name.
*/ -}}
{{- define "engine.role" -}}
{{- $root := index . 0 -}}
{{- $name := printf "%s:%s" $root.Release.Namespace (index . 3) -}}
{{- $namespace := index . 4 -}}
{{- $kind := empty $namespace | ternary "ClusterRole" "Role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "engine.labels" (list $root (index . 1)) | nindent 4 }}
rules:
  {{- index . 5 | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "engine.labels" (list $root (index . 1)) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ index . 2 }}
    namespace: {{ $root.Release.Namespace }}
{{ end -}}

{{- define "engine.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "engine.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Where a pod may run. (the component's values) */ -}}
{{- define "engine.scheduling" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Namespaces in which jobs run, "" for all; the first one counts where a spec names none. */ -}}
{{- define "engine.jobs.namespaces" -}}
{{- $named := .Values.engine.jobs.allNamespaces | ternary (list "") .Values.engine.jobs.namespaces -}}
{{- toJson (required "engine.jobs.namespaces has to name where jobs run; best not the engine's own" (default nil $named)) -}}
{{- end -}}

{{- /* "true" where a job may run in the engine's own namespace, beside its token and its Secrets. */ -}}
{{- define "engine.jobs.beside" -}}
{{- $places := include "engine.jobs.namespaces" . | fromJsonArray -}}
{{- if or (has "" $places) (has .Release.Namespace $places) }}true{{ end -}}
{{- end -}}

{{- /* The operator's configuration. Beside the engine a job takes no account and no Secret that it doesn't allow. */ -}}
{{- define "engine.config" -}}
{{- $none := dict "limits" (dict "allowedServiceAccounts" list "allowedSecrets" list) -}}
{{- $config := deepCopy .Values.engine.config -}}
{{- if include "engine.jobs.beside" . -}}
{{- $config = mergeOverwrite $none $config -}}
{{- end -}}
{{- with $config }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- define "engine.jobs.namespace" -}}
{{- if .Values.engine.jobs.allNamespaces }}{{ .Release.Namespace }}
{{- else }}{{ first (include "engine.jobs.namespaces" . | fromJsonArray) }}{{ end -}}
{{- end -}}

{{- /* What matches one of these globs, as a regular expression. */ -}}
{{- define "engine.pattern" -}}
{{- $patterns := list -}}
{{- range . -}}
{{- $text := regexQuoteMeta . | replace "\\*" ".*" | replace "\\?" "." | replace "\\[!" "[^" -}}
{{- $patterns = append $patterns ($text | replace "\\[" "[" | replace "\\]" "]") -}}
{{- end -}}
^({{ join "|" $patterns }})$
{{- end -}}

{{- define "engine.specs.configMap" -}}
{{- default (printf "%s-specs" (include "engine.fullname" .)) .Values.engine.specs.configMap.name -}}
{{- end -}}

{{- define "engine.specs.folder" -}}
{{- $from := .Values.engine.specs.from -}}
{{- $path := .Values.engine.specs.path | trimAll "/" -}}
{{- eq $from "git" | ternary "/specs/current" "/specs" }}{{ with $path }}/{{ . }}{{ end -}}
{{- end -}}

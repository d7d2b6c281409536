-- Health of a JobSpec for Argo CD: in its ConfigMap argocd-cm, under the key
-- resource.customizations.health.jobs.engine_JobSpec. docs/gitops.md has it in its place.
local health = {status = "Progressing", message = "no engine has seen this yet"}
local status = obj.status or {}
-- Conditions of an older generation say nothing about this spec.
if status.observedGeneration ~= obj.metadata.generation then
  return health
end
local is_true = {}
for _, condition in ipairs(status.conditions or {}) do
  is_true[condition.type] = condition.status == "True"
  if condition.type == "Ready" then
    health.message = condition.message
  end
end
if is_true.Stalled or is_true.Failed then
  health.status = "Degraded"
elseif is_true.Suspended then
  health.status = "Suspended"
elseif is_true.Complete then
  health.status = "Healthy"
end
return health

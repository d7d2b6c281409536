"""What other tools call a job, as a JobSpec: pure functions from their YAML to ours."""

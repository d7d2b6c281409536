"""From a checked job to manifests, through Jinja templates that cannot be injected into."""

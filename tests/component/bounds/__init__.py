"""The engine within the memory of its pod, whatever authors and tenants do."""

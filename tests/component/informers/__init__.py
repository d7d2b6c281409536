"""The local pictures of pods and records: what they hold after whatever the watch went through."""

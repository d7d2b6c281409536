"""The API's verbs over storage, one per file; HTTP knows nothing of what stands here."""

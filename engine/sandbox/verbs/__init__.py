"""The API's verbs over storage, one per file; none of them knows HTTP."""

"""What a pod's status says: one reading per file.

A reading is pure, takes a pod as the API returned it, and knows nothing of jobs or records.
"""

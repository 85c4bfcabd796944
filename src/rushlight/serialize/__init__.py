"""Programs and their data as files: `.pte` (:mod:`.pte`) and `.ptd` (:mod:`.ptd`)."""

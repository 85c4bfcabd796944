"""What `rushlight new-backend` writes: a small backend that works, with its tests.

`package` is the form in Python; `c` has what is there in its place, or beside it, if the runtime
half is in C. `NAMES` are the words that take the new backend's names. `op` has the templates of
what `rushlight new-op` writes.
"""

NAMES = ("skeleton_backend", "skeleton-backend", "Skeleton", "skeleton")
"""Module, distribution, prefix of classes, and the backend's own name, in the order of replacing:
each but the last holds the one that comes after it, or stands for itself."""

"""The entries of an ETRecord, which is a zip archive."""

MARKER = "ETRECORD_V0"
EDGE = "edge_dialect_exported_program"

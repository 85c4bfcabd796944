"""The entries of an ETRecord, which is a zip archive."""

from enum import StrEnum


class Entry(StrEnum):
    """The archive's entries; a program's are followed by "/METHOD", and have companions."""

    ETRECORD_IDENTIFIER = "ETRECORD_V0"
    EXPORTED_PROGRAM = "exported_program"
    EXPORT_GRAPH_ID = "export_graph_id"
    EDGE_DIALECT_EXPORTED_PROGRAM = "edge_dialect_exported_program"
    ET_DIALECT_GRAPH_MODULE = "et_dialect_graph_module"
    DEBUG_HANDLE_MAP_NAME = "debug_handle_map"
    DELEGATE_MAP_NAME = "delegate_map"
    INSTRUCTION_ID_TO_NUM_OUTS_MAP_NAME = "instruction_id_to_num_outs_map"
    REFERENCE_OUTPUTS = "reference_outputs"
    REPRESENTATIVE_INPUTS = "representative_inputs"


MARKER = Entry.ETRECORD_IDENTIFIER.value
EDGE = Entry.EDGE_DIALECT_EXPORTED_PROGRAM.value

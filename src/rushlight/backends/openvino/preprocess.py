"""The compiler of the backend: from a partition to OpenVINO's intermediate representation."""

from __future__ import annotations

import tempfile
from pathlib import Path

import openvino
from torch.export import ExportedProgram

from rushlight.backends.openvino.convert import convert, debug_handle_map, orders_of
from rushlight.backends.openvino.payload import Payload, write_payload
from rushlight.backends.openvino.properties import exact_properties
from rushlight.errors import Code, ExportError
from rushlight.partition import BackendDetails, CompileSpec, PreprocessResult, spec_texts

FORMATS = ("ir", "blob")


class OpenvinoBackend(BackendDetails):
    """Compiles partitions to payloads for OpenVINO.

    Compile specs (values are text):

    * `device`: "CPU" by default;
    * `payload`: "ir", the model itself, which each machine compiles when it loads the program; or
      "blob", the model compiled at export, which ExecuTorch stores and reads, and which only the
      same version of OpenVINO accepts;
    * OpenVINO's own properties, in capital letters. By default, `INFERENCE_PRECISION_HINT` is
      "f32", because the default of a processor may be bfloat16, and
      `DYNAMIC_QUANTIZATION_GROUP_SIZE` is "0", so that OpenVINO quantises nothing by itself.
    """

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Convert one partition.

        Raises:
            ExportError: for a wrong option, or a node that OpenVINO cannot read.
        """
        options = read_specs(compile_specs)
        model = convert(edge_program)
        handles = debug_handle_map(model, edge_program)
        if options.get("payload", "ir") == "blob":
            payload = _blob(model, edge_program, options)
        else:
            payload = _representation(model, edge_program)
        return PreprocessResult(payload, handles)


def read_specs(specs: list[CompileSpec]) -> dict[str, str]:
    """The compile specs as a dictionary of texts.

    Raises:
        ExportError: for an unknown key or value.
    """
    options = spec_texts(specs)
    for key, value in options.items():
        if not (key in ("device", "payload") or key.isupper()):
            raise ExportError(
                f"unknown compile spec {key!r}: allowed are device, payload and OpenVINO's "
                f"properties in capital letters",
                code=Code.INVALID_ARGUMENT,
            )
        if key == "payload" and value not in FORMATS:
            raise ExportError(
                f"the compile spec payload is {value!r}; allowed are {', '.join(FORMATS)}",
                code=Code.INVALID_ARGUMENT,
            )
    return options


def _representation(model: openvino.Model, program: ExportedProgram) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        xml, weights = Path(folder, "model.xml"), Path(folder, "model.bin")
        openvino.serialize(model, xml, weights)
        return write_payload(Payload(xml.read_bytes(), weights.read_bytes(), orders_of(program)))


def _blob(model: openvino.Model, program: ExportedProgram, options: dict[str, str]) -> bytes:
    if any(orders_of(program)):
        raise ExportError(
            "a delegate with channels-last inputs cannot be stored as a blob, which "
            "says nothing of dim orders: use the compile spec payload=ir, or a contiguous input",
            code=Code.NOT_SUPPORTED,
        )
    core, device = openvino.Core(), options.get("device", "CPU")
    properties = {k: v for k, v in options.items() if k.isupper()}
    config = exact_properties(core, device) | properties
    try:
        compiled = core.compile_model(model, device, config)
        return bytes(compiled.export_model().getvalue())
    except RuntimeError as error:
        raise ExportError(
            f"OpenVINO {openvino.__version__} cannot compile a blob for {device!r} with {config}: "
            f"{str(error).strip()}. The devices here are {', '.join(core.available_devices)}; "
            f"payload=ir needs none at export",
            code=Code.NOT_SUPPORTED,
        ) from error

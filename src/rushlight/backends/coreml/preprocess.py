"""The compiler half: a part of a graph as a Core ML model package, made by coremltools."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.coreml.directory import flatten
from rushlight.backends.coreml.specs import ModelType, Options, read_specs, write_specs
from rushlight.backends.coreml.tools import coremltools as ct
from rushlight.errors import Code, ExportError
from rushlight.ir.source import source_of
from rushlight.partition import BackendDetails, CompileSpec, PreprocessResult

_ROOT = "lowered_module"
_PACKAGE = "model.mlpackage"
_MAPPING = "executorch_debug_handle_mapping.json"  # coremltools' name
_CONVERTING = threading.Lock()  # coremltools and `_quiet` change what the whole process shares
_DATE = "com.github.apple.coremltools.conversion_date"


class CoreMLBackend(BackendDetails):
    """Turns parts of a graph into model packages, in the layout that ExecuTorch's delegate reads.

    The payload is a folder `lowered_module` with `model.mlpackage`, `metadata.json` (names of
    inputs and outputs in order) and `debug_info.json`. `generate_compile_specs` makes its options.
    """

    MODEL_TYPE = ModelType

    @staticmethod
    def generate_compile_specs(
        compute_unit: ct.ComputeUnit = Options.units,
        minimum_deployment_target: ct.target | None = None,
        compute_precision: ct.precision = Options.precision,
        model_type: ModelType = ModelType.MODEL,
    ) -> list[CompileSpec]:
        """The options as compile specs.

        Args:
            compute_unit: what may compute the delegate on the device.
            minimum_deployment_target: the oldest system that the program is for.
            compute_precision: of floats; by default Core ML computes in float16.
            model_type: only MODEL can be made on systems without Core ML.
        """
        return write_specs(compute_unit, minimum_deployment_target, compute_precision, model_type)

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Convert one part.

        Raises:
            ExportError: for an option that is wrong, or a node that coremltools cannot convert.
        """
        options = read_specs(compile_specs)
        model = _convert(edge_program, options)
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary, _ROOT)
            package = root / _PACKAGE
            model.user_defined_metadata.pop(_DATE, None)  # equal programs make equal files
            model.save(str(package))
            _settle_manifest(package / "Manifest.json")
            info = _debug_info(package / _MAPPING)
            (root / "debug_info.json").write_text(json.dumps(info))
            _write_metadata(root, model.get_spec())
            payload = flatten(root)
        handles = {name: tuple(found) for name, found in info["debugSymbolToHandles"].items()}
        return PreprocessResult(payload, handles)


def _convert(program: ExportedProgram, options: Options) -> Any:
    """coremltools' model of the program."""
    try:
        with _CONVERTING, _quiet():
            return ct.convert(
                program,
                source="pytorch",
                convert_to="mlprogram",
                skip_model_load=True,
                compute_units=options.units,
                compute_precision=options.precision,
                minimum_deployment_target=options.target,
            )
    except Exception as error:  # coremltools raises many kinds: all mean that there is no model
        raise _unconvertible(program, error) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without coremltools' progress bars and its advice about versions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _unconvertible(program: ExportedProgram, error: Exception) -> ExportError:
    """coremltools' refusal with the nodes that it names, else with the first one."""
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    blamed = [n for n in calls if _is_named(n, str(error))] or calls[:1]
    shown = "; ".join(f"{n.name} ({n.target}; {source_of(n)})" for n in blamed[:5])
    operators = sorted({str(n.target) for n in blamed[:5]})
    return ExportError(
        f"coremltools {ct.__version__} cannot convert {shown}: {type(error).__name__}: "
        f"{str(error).strip()}. Leave them out with "
        f"CoreMLPartitioner(skip_ops_for_coreml_delegation={operators})",
        code=Code.NOT_SUPPORTED,
    )


def _is_named(node: Node, message: str) -> bool:
    return f"'{node.name}'" in message or f'"{node.name}"' in message


def _settle_manifest(path: Path) -> None:
    """Give the parts of the package ids that depend on nothing but their paths."""
    manifest = json.loads(path.read_text())
    items = manifest["itemInfoEntries"]
    ids = {old: str(uuid.uuid5(uuid.NAMESPACE_URL, items[old]["path"])) for old in items}
    manifest["itemInfoEntries"] = {ids[old]: item for old, item in items.items()}
    manifest["rootModelIdentifier"] = ids[manifest["rootModelIdentifier"]]
    path.write_text(json.dumps(manifest, sort_keys=True))


def _debug_info(path: Path) -> dict[str, Any]:
    """coremltools' {handle: paths of operations}, turned round as ExecuTorch's delegate has it."""
    found = json.loads(path.read_text()) if path.exists() else {}
    paths: dict[str, Any] = {}
    handles: dict[str, list[int]] = {}
    for handle, operations in found.get("mapping", {}).items():
        if not handle.isdecimal():  # "null": what coremltools made of nothing in the graph
            continue
        for steps in operations:
            last = steps[-1]
            symbol = f"{last['Output']}:{last['Operator']}"
            paths[symbol] = steps
            handles.setdefault(symbol, []).append(int(handle))
    version = found.get("version", {})
    return {
        "versionInfo": version if isinstance(version, dict) else {"coremltools": version},
        "debugSymbolToOperationPath": paths,
        "debugSymbolToHandles": handles,
    }


def _write_metadata(root: Path, spec: Any) -> None:
    """Names of inputs and outputs in order, and an id under which the device keeps the model."""
    content = hashlib.sha256(flatten(root)).hexdigest()
    metadata = {
        "inputNames": [given.name for given in spec.description.input],
        "outputNames": [result.name for result in spec.description.output],
        "identifier": f"executorch_{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
    }
    (root / "metadata.json").write_text(json.dumps(metadata))

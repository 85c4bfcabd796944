"""The compiler of the backend: from a partition to a Core ML model package, with coremltools."""

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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.backends.coreml.directory import flatten
from rushlight.backends.coreml.files import ModelDebugInfo, ModelMetadata, ModelPath
from rushlight.backends.coreml.specs import ModelType, Options, read_specs, write_specs
from rushlight.backends.coreml.tools import coremltools as ct
from rushlight.backends.coreml.tools import get_coreml_log_level
from rushlight.errors import Code, ExportError
from rushlight.ir.source import source_of
from rushlight.partition import BackendDetails, CompileSpec, PreprocessResult

_ROOT = "lowered_module"
_MAPPING = "executorch_debug_handle_mapping.json"  # coremltools' name
_CONVERTING = threading.Lock()  # coremltools and `_quiet` change what the whole process shares
_DATE = "com.github.apple.coremltools.conversion_date"


class CoreMLBackend(BackendDetails):
    """Compiles partitions to model packages, in the layout that ExecuTorch's delegate reads.

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
            compute_unit: the units of the device that may compute the delegate.
            minimum_deployment_target: the oldest system that the program must run on.
            compute_precision: the precision of floats; by default Core ML computes in float16.
            model_type: the kind of payload; only MODEL is possible on systems without Core ML.
        """
        return write_specs(compute_unit, minimum_deployment_target, compute_precision, model_type)

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Convert one partition.

        Raises:
            ExportError: for a wrong option, or a node that coremltools cannot convert.
        """
        options = read_specs(compile_specs)
        model = _convert(edge_program, options)
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary, _ROOT)
            package = root / ModelPath.MODEL.value
            model.user_defined_metadata.pop(_DATE, None)  # equal programs make equal files
            model.save(str(package))
            _settle_manifest(package / "Manifest.json")
            info = _debug_info(package / _MAPPING)
            (root / ModelPath.DEBUG_INFO.value).write_text(json.dumps(asdict(info)))
            _write_metadata(root, model.get_spec())
            payload = flatten(root)
        handles: dict[int | str, tuple[int, ...]] = {
            name: tuple(numbers) for name, numbers in info.debugSymbolToHandles.items()
        }
        return PreprocessResult(payload, handles)


def _convert(program: ExportedProgram, options: Options) -> Any:
    """The program converted to a model by coremltools."""
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
    except Exception as error:  # coremltools raises many types; with any of them there is no model
        raise _unconvertible(program, error) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """While active, coremltools shows no progress bars, and no messages that are no errors unless
    `ET_COREML_LOG_LEVEL` asks for them."""
    before = logging.root.manager.disable
    logging.disable(get_coreml_log_level(logging.ERROR) - 1)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _unconvertible(program: ExportedProgram, error: Exception) -> ExportError:
    """The error for a program that coremltools cannot convert, with the nodes that its message
    names, else with the first node."""
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    blamed = [n for n in calls if _is_named(n, str(error))] or calls[:1]
    shown = "; ".join(f"{n.name} ({n.target}; {source_of(n)})" for n in blamed[:5])
    operators = sorted({str(n.target) for n in blamed[:5]})
    return ExportError(
        f"coremltools {ct.__version__} cannot convert {shown}: {type(error).__name__}: "
        f"{str(error).strip()}. Leave them out with "
        f"CoreMLPartitioner(skip_ops_for_coreml_delegation={operators})",
        code=Code.NOT_SUPPORTED,
        sources=[source_of(node) for node in blamed[:5]],
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


def _debug_info(path: Path) -> ModelDebugInfo:
    """coremltools' {handle: paths of operations}, inverted as ExecuTorch's delegate reads it."""
    mapping = json.loads(path.read_text()) if path.exists() else {}
    paths: dict[str, Any] = {}
    handles: dict[str, list[int]] = {}
    for handle, operations in mapping.get("mapping", {}).items():
        if not handle.isdecimal():  # "null": operations that come from no node of the graph
            continue
        for operation_path in operations:
            last = operation_path[-1]
            symbol = f"{last['Output']}:{last['Operator']}"
            paths[symbol] = operation_path
            handles.setdefault(symbol, []).append(int(handle))
    version = mapping.get("version", {})
    versions = version if isinstance(version, dict) else {"coremltools": version}
    return ModelDebugInfo(versions, paths, handles)


def _write_metadata(root: Path, spec: Any) -> None:
    """Write the names of inputs and outputs in order, and the id under which a device caches the
    model."""
    content = hashlib.sha256(flatten(root)).hexdigest()
    metadata = ModelMetadata(
        [source.name for source in spec.description.input],
        [result.name for result in spec.description.output],
        f"executorch_{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
    )
    (root / ModelPath.METADATA.value).write_text(json.dumps(asdict(metadata)))

"""Real ExecuTorch as an oracle: runs in its own environment and imports nothing of ours.

Commands, each also callable by hand as ``executorch_side.py COMMAND name=value ...``. `program`
is a file of ``torch.export.save``, `data` an .npz with flattened inputs ``in0`` ...:

* ``export program= pte= [own_operators=] [xnnpack=]``: lower a program for the portable kernels,
  or for XNNPACK and these, write the file; answers with the CPU and wall seconds that this took
  without reading and writing.
* ``export_apart program= pte= tag=``: lower it for XNNPACK with its delegates' weights in a file
  ``tag.ptd`` beside it; answers with the names of the files that were written.
* ``delegate program= pte= leave= [xnnpack=]``: the same with a backend that stores nothing, or with
  XNNPACK's, which takes all operators but those whose names contain `leave`, whatever its own
  partitioner would take; answers with the delegates' number, too.
* ``quantize program= data= quantized= [per_channel=] [dynamic=]``: quantise a program with
  ExecuTorch's quantizer for XNNPACK, calibrated with the inputs, and write it for ``export``.
* ``delegate_demo program= pte=``: lower it with ExecuTorch's own demo backend for add and mul.
* ``run pte= data= outputs= [method=] [calls=] [own_operators=] [channels_last=] [ptd=]``: run a
  program, write its outputs ``out0`` ... of the last call. `own_operators` brings in the libraries
  beside torch's; `channels_last` is how all inputs, images then, are given; `ptd` has the weights
  that the program leaves out.
* ``operators``: the names of all kernels.
* ``plan pte=``: arena sizes in bytes by memory id.
* ``latency pte= data= [calls=] [warmup=]``: seconds of each call.
* ``generate pte= tokenizer= prompt= count=``: the text that ExecuTorch's runner for language models
  generates, greedily, and the same once more after a reset.
* ``logits pte= tokens= pieces= outputs=``: the logits after each piece of a text, whose numbers of
  tokens are `pieces`, by calls of a language model's ``forward``.
* ``export_llama params= checkpoint= folder= options=``: what ExecuTorch's own exporter makes of a
  Llama; `options` are fields of its configuration, by their dotted names. Answers with the file.
* ``record program= pte= etrecord= [xnnpack=]``: lower a program as ``export`` does, and write an
  ETRecord of it.
* ``trace dump= [values=] [etrecord=]``: what ExecuTorch's Inspector shows of an ETDump: the name,
  events and outputs of each block.
* ``save_program`` and ``load_program``: see ``serde_side.py``.
* ``bundle``, ``read_bundle``, ``traced_cases`` and ``verify``: see ``bundle_side.py``.
* ``tables`` and ``json_forms``: see ``tables_side.py``.
* ``run_traced``: see ``trace_side.py``.
* ``gaps dump= values= etrecord= distance=``: the numeric gaps that ExecuTorch's Inspector finds:
  pairs of the last node and the gap.
* ``forget``: let go of the programs that ``latency`` and ``overhead`` keep loaded.
* ``overhead pte= data= calls=``: mean seconds of a call of a tiny program.
* ``load pte= data=``: time and memory of loading; for a fresh process.
* ``sizes pte= sizes=``: memory after calls with square images of these sizes; for a fresh process.
* ``serve``: answer requests (see ``rushlight/peers/side.py``).
"""

from __future__ import annotations

import copy
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "peers"))

import bundle_side
import numpy as np
import serde_side
import side
import tables_side
import torch
import trace_side

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def _inputs(data: str) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in side.read_inputs(data)]


def export(
    program: str, pte: str, own_operators: bool = False, xnnpack: bool = False
) -> dict[str, float]:
    from executorch.exir import to_edge_transform_and_lower

    if own_operators:
        _import_own_operators()
    exported = torch.export.load(program)
    partitioners: list[Any] = []
    if xnnpack:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        partitioners = [XnnpackPartitioner()]

    def lower() -> bytes:
        edge = to_edge_transform_and_lower(exported, partitioner=partitioners)
        return edge.to_executorch().buffer

    buffer, seconds = side.measure_once(lower)
    Path(pte).write_bytes(buffer)
    return seconds


def export_apart(program: str, pte: str, tag: str) -> list[str]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.exir.passes.external_constants_pass import (
        delegate_external_constants_pass_unlifted,
    )

    exported = torch.export.load(program)
    args, kwargs = exported.example_inputs
    module = exported.module()
    delegate_external_constants_pass_unlifted(module, gen_tag_fn=lambda node: tag)
    again = torch.export.export(module, args, kwargs, strict=True)  # else tags are lost
    edge = to_edge_transform_and_lower(again, partitioner=[XnnpackPartitioner()])
    finished = edge.to_executorch()
    folder = Path(pte).parent
    before = set(folder.iterdir())
    Path(pte).write_bytes(finished.buffer)
    finished.write_tensor_data_to_file(str(folder))
    return sorted(path.name for path in set(folder.iterdir()) - before)


def delegate(program: str, pte: str, leave: str, xnnpack: bool = False) -> dict[str, float]:
    from executorch.exir import to_edge_transform_and_lower
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
    from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
        generate_partitions_from_list_of_nodes,
    )
    from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
    from executorch.exir.backend.utils import get_delegates, tag_constant_data
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Nothing(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            return PreprocessResult(processed_bytes=b"nothing")

    class Supported(OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return node.op == "call_function" and leave not in str(node.target)

    class Takes(Partitioner):
        def partition(self, exported_program: Any) -> PartitionResult:
            spec, tags = DelegationSpec("XnnpackBackend" if xnnpack else "Nothing", []), {}
            for part in generate_partitions_from_list_of_nodes(
                exported_program.graph_module, op_support=Supported()
            ):
                tags[f"tag{part.id}"] = spec
                for node in part.nodes:
                    node.meta["delegation_tag"] = f"tag{part.id}"
            tag_constant_data(exported_program)
            return PartitionResult(exported_program, tags)

    if xnnpack:
        import executorch.backends.xnnpack.xnnpack_preprocess  # noqa: F401
    exported = torch.export.load(program)

    def lower() -> tuple[bytes, int]:
        edge = to_edge_transform_and_lower(exported, partitioner=[Takes()])
        return edge.to_executorch().buffer, len(get_delegates(edge.exported_program().graph))

    (buffer, count), seconds = side.measure_once(lower)
    Path(pte).write_bytes(buffer)
    return {**seconds, "delegates": count}


def quantize(
    program: str, data: str, quantized: str, per_channel: bool = True, dynamic: bool = False
) -> None:
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    config = get_symmetric_quantization_config(is_per_channel=per_channel, is_dynamic=dynamic)
    exported = torch.export.load(program)
    args, kwargs = torch.utils._pytree.tree_unflatten(_inputs(data), exported.call_spec.in_spec)
    observed = prepare_pt2e(exported.module(), XNNPACKQuantizer().set_global(config))
    observed(*args, **kwargs)
    torch.export.save(torch.export.export(convert_pt2e(observed), args, kwargs), quantized)


def delegate_demo(program: str, pte: str) -> list[str]:
    """Answers with the backends that the file names."""
    from executorch.exir import to_edge
    from executorch.exir.backend.test.op_partitioner_demo import AddMulPartitionerDemo

    edge = to_edge(torch.export.load(program)).to_backend(AddMulPartitionerDemo())
    finished = edge.to_executorch()
    Path(pte).write_bytes(finished.buffer)
    return [d.id for d in finished.executorch_program.execution_plan[0].delegates]


def _load_module(pte: str, ptd: str | None = None) -> Any:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    return _load_for_executorch(pte, ptd)


def operators() -> list[str]:
    from executorch.extension.pybindings import portable_lib

    _import_own_operators()
    return list(portable_lib._get_operator_names())


def _import_own_operators() -> None:
    """The kernels, and torch's operators, of the wheel's libraries beside the portable one."""
    import executorch.exir.passes._quant_patterns_and_replacements
    import executorch.extension.llm.custom_ops.custom_ops
    import executorch.extension.llm.custom_ops.op_tile_crop_aot
    import executorch.kernels.quantized  # noqa: F401


def run(
    pte: str,
    data: str,
    outputs: str,
    method: str = "forward",
    calls: int = 1,
    own_operators: bool = False,
    channels_last: bool = False,
    ptd: str | None = None,
) -> None:
    if own_operators:
        _import_own_operators()
    module, inputs = _load_module(pte, ptd), _inputs(data)
    if channels_last:
        inputs = [x.to(memory_format=torch.channels_last) for x in inputs]
    for _ in range(int(calls)):
        results = module.run_method(method, inputs)
    np.savez(outputs, **{f"out{i}": np.asarray(x) for i, x in enumerate(results)})


def plan(pte: str) -> dict[str, int]:
    from executorch.exir._serialize._program import deserialize_pte_binary

    file = deserialize_pte_binary(Path(pte).read_bytes())
    sizes = getattr(file, "program", file).execution_plan[0].non_const_buffer_sizes
    return {str(i): size for i, size in enumerate(sizes) if i > 0}


_CALLS: dict[tuple[str, str], side.Call] = {}


def _call(pte: str, data: str) -> side.Call:
    """A call of the program's ``forward`` on its inputs, loaded once and kept."""
    if (pte, data) not in _CALLS:
        from executorch.runtime import Runtime

        program = Runtime.get().load_program(Path(pte))
        method, inputs = program.load_method("forward"), _inputs(data)
        # A method does not keep its program alive.
        _CALLS[pte, data] = lambda kept=program: method.execute(inputs)
    return _CALLS[pte, data]


def latency(pte: str, data: str, calls: int = 5, warmup: int = 1) -> list[float]:
    return side.measure_calls(_call(pte, data), int(calls), int(warmup))


def forget() -> None:
    _CALLS.clear()


def overhead(pte: str, data: str, calls: int) -> float:
    return side.measure_loop(_call(pte, data), int(calls))


def load(pte: str, data: str) -> dict[str, float]:
    from executorch.runtime import Runtime

    runtime, inputs = Runtime.get(), _inputs(data)  # their import is not part of a load

    def load_all() -> side.Call:
        program = runtime.load_program(Path(pte))
        method = program.load_method("forward")
        return lambda kept=program: method.execute(inputs)

    return side.measure_load(load_all)


def sizes(pte: str, sizes: list[int]) -> dict[str, list[int]]:
    from executorch.runtime import Runtime

    runtime = Runtime.get()

    def load_program() -> Callable[[int], None]:
        program = runtime.load_program(Path(pte))
        method = program.load_method("forward")

        def call(size: int, kept: Any = program) -> None:
            method.execute([torch.ones(1, 3, size, size)])

        return call

    return {"anonymous": side.measure_sizes(load_program, sizes)}


def generate(pte: str, tokenizer: str, prompt: str, count: int) -> list[str]:
    _import_own_operators()
    # The package of the runner imports a class for images from transformers, which is not needed.
    absent: Any = types.ModuleType("transformers.feature_extraction_utils")
    absent.BatchFeature = dict
    sys.modules.setdefault("transformers", types.ModuleType("transformers"))
    sys.modules.setdefault(absent.__name__, absent)
    from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

    runner, texts = TextLLMRunner(pte, tokenizer), []
    for _ in range(2):
        pieces: list[str] = []
        options = GenerationConfig(echo=False, temperature=0.0, max_new_tokens=int(count))
        runner.generate(prompt, options, pieces.append)
        texts.append("".join(pieces))
        runner.reset()
    return texts


def logits(pte: str, tokens: list[int], pieces: list[int], outputs: str) -> None:
    _import_own_operators()
    module, rows, position = _load_module(pte), [], 0
    for count in pieces:
        piece, start = tokens[position : position + count], torch.tensor([position])
        [result] = module.run_method("forward", [torch.tensor([piece]), start])
        rows.append(result.reshape(-1, result.shape[-1])[-1].float().numpy())
        position += count
    np.savez(outputs, logits=np.stack(rows))


def export_llama(params: str, checkpoint: str, folder: str, options: dict[str, Any]) -> str:
    from executorch.examples.models.llama.export_llama_lib import _export_llama
    from executorch.extension.llm.export.config.llm_config import LlmConfig

    config = LlmConfig()
    paths = {"base.params": params, "base.checkpoint": checkpoint, "export.output_dir": folder}
    for name, value in {**paths, **options}.items():
        *groups, field = name.split(".")
        group: Any = config
        for one in groups:
            group = getattr(group, one)
        setattr(group, field, value)
    path: str = _export_llama(config).get_saved_pte_filename()
    return path


def record(program: str, pte: str, etrecord: str, xnnpack: bool = False) -> None:
    """Lower a program and write what ExecuTorch's developer tools need to know of it."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.devtools import generate_etrecord
    from executorch.exir import to_edge_transform_and_lower

    exported = torch.export.load(program)
    partitioner = [XnnpackPartitioner()] if xnnpack else None
    edge = to_edge_transform_and_lower(exported, partitioner=partitioner)
    kept = copy.deepcopy(edge)
    made = edge.to_executorch()
    generate_etrecord(etrecord, kept, made, exported_program=exported)
    Path(pte).write_bytes(made.buffer)


def trace(dump: str, values: str | None = None, etrecord: str | None = None) -> list[Any]:
    """The blocks of a trace, as ExecuTorch's Inspector shows them."""
    from executorch.devtools import Inspector

    blocks = Inspector(dump, etrecord=etrecord, debug_buffer_path=values).event_blocks
    return [
        {
            "name": block.name,
            "events": [
                {
                    "name": event.name,
                    "instruction": event._instruction_id,
                    "ns": [round(t * 1e6) for t in event.perf_data.raw] if event.perf_data else [],
                    "shapes": [list(getattr(value, "shape", ())) for value in event.debug_data],
                    "op_types": event.op_types,
                    "stack_traces": event.stack_traces,
                    "modules": {k: list(v or {}) for k, v in event.module_hierarchy.items()},
                    "backend": event.delegate_backend_name,
                    "handles": event.debug_handles,
                }
                for event in block.events
            ],
            "outputs": [tensor.tolist() for tensor in block.run_output],
        }
        for block in blocks
    ]


def gaps(dump: str, values: str, etrecord: str, distance: str) -> list[Any]:
    """The numeric gaps between a trace and the Edge program of its record."""
    from executorch.devtools import Inspector

    inspector = Inspector(dump, etrecord=etrecord, debug_buffer_path=values)
    frame = inspector.calculate_numeric_gap(
        distance, reference_graph="edge_dialect_exported_program"
    )
    return [[list(row.aot_ops), float(row.gap[0])] for row in frame.itertuples()]


COMMANDS: dict[str, side.Command] = {
    **bundle_side.COMMANDS,
    **tables_side.COMMANDS,
    **trace_side.COMMANDS,
    "export": export,
    "export_apart": export_apart,
    "delegate": delegate,
    "quantize": quantize,
    "delegate_demo": delegate_demo,
    "run": run,
    "operators": operators,
    "plan": plan,
    "latency": latency,
    "generate": generate,
    "logits": logits,
    "export_llama": export_llama,
    "forget": forget,
    "overhead": overhead,
    "load": load,
    "sizes": sizes,
    "record": record,
    "trace": trace,
    "gaps": gaps,
    "save_program": serde_side.save_program,
    "load_program": serde_side.load_program,
}

if __name__ == "__main__":
    side.main(COMMANDS, __doc__)

"""Graphs in a browser by Model Explorer, the package `ai-edge-model-explorer`.

Model Explorer also opens our files, and `rushlight inspect --html` needs no other package.
"""

from __future__ import annotations

import importlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from torch._export.verifier import Verifier
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.errors import Code, RunError
from rushlight.files import write_text
from rushlight.pipeline import EdgeProgramManager, ExecutorchProgramManager

Visualizable = ExportedProgram | EdgeProgramManager | ExecutorchProgramManager
PartName = Callable[[Node], str | None]

_TITLE = "Executorch"
_PORT = 8080  # Model Explorer's own


def _explorer() -> Any:
    """The package.

    Raises:
        RunError: it is not installed.
    """
    try:
        return importlib.import_module("model_explorer")
    except ImportError as error:
        raise _missing(str(error)) from None


def _missing(what: str) -> RunError:
    return RunError(
        f"Model Explorer is not installed ({what}): pip install ai-edge-model-explorer, or use "
        "`rushlight inspect --html`",
        code=Code.NOT_FOUND,
    )


class ModelExplorerServer:
    """A `with` block in which a server of Model Explorer runs.

    Args:
        open_in_browser: whether it opens a page.
        port: where it listens; None: at 8080 or, if that is taken, at the next free one.

    Attributes:
        server: its process.
        wait_after_start: seconds within which it is to listen.

    Raises:
        RunError: it is not installed.
    """

    wait_after_start: ClassVar[float] = 10.0

    def __init__(self, open_in_browser: bool = True, port: int | None = None) -> None:
        command = shutil.which("model-explorer")
        if command is None:
            raise _missing("there is no command model-explorer")
        options = [] if open_in_browser else ["--no_open_in_browser"]
        options += [] if port is None else ["--port", str(port)]
        self._port = _PORT if port is None else port
        self.server = subprocess.Popen([command, *options])

    def __enter__(self) -> ModelExplorerServer:
        end = time.monotonic() + self.wait_after_start
        while self.server.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("localhost", self._port), 1).close()
                return self
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        raise RunError(
            f"Model Explorer does not listen at port {self._port} after {self.wait_after_start} s: "
            "give another port",
            code=Code.INVALID_STATE,
        )

    def __exit__(self, *error: object) -> None:
        self.server.kill()
        self.server.wait()


class SingletonModelExplorerServer:
    """A `with` block with a server that the blocks inside it share.

    Args:
        open_in_browser, port: as for `ModelExplorerServer`, of the outermost block.

    Attributes:
        server: the server; None outside of all blocks.
        num_open: how many blocks are open.

    Raises:
        RunError: Model Explorer is not installed.
    """

    server: ClassVar[ModelExplorerServer | None] = None
    num_open: ClassVar[int] = 0

    def __init__(self, open_in_browser: bool = True, port: int | None = None) -> None:
        if SingletonModelExplorerServer.server is None:
            SingletonModelExplorerServer.server = ModelExplorerServer(open_in_browser, port)

    def __enter__(self) -> SingletonModelExplorerServer:
        shared = SingletonModelExplorerServer
        if shared.num_open == 0 and shared.server is not None:
            shared.server.__enter__()
        shared.num_open += 1
        return self

    def __exit__(self, *error: object) -> None:
        shared = SingletonModelExplorerServer
        shared.num_open -= 1
        if shared.num_open == 0 and shared.server is not None:
            shared.server.__exit__()
            shared.server = None


def visualize_model_explorer(**kwargs: Any) -> None:
    """`model_explorer.visualize_from_config`.

    Args:
        kwargs: its arguments.

    Raises:
        RunError: Model Explorer is not installed.
    """
    _explorer().visualize_from_config(**kwargs)


def visualize(
    visualizable: Visualizable,
    reuse_server: bool = True,
    no_open_in_browser: bool = False,
    **kwargs: Any,
) -> None:
    """Show a program of any stage.

    Args:
        visualizable: the program; of a manager, its `forward`.
        reuse_server: show it in a server that runs already, if there is one.
        no_open_in_browser: do not open a page.
        kwargs: further arguments of `model_explorer.visualize_from_config`.

    Raises:
        RunError: Model Explorer is not installed.
    """
    config = _config(_program_of(visualizable))
    if reuse_server:
        config.set_reuse_server()
    given = {"config": config, "no_open_in_browser": no_open_in_browser, **kwargs}
    visualize_model_explorer(**given)


def visualize_graph(
    graph_module: GraphModule,
    exported_program: Visualizable,
    reuse_server: bool = True,
    no_open_in_browser: bool = False,
    **kwargs: Any,
) -> None:
    """Show a graph that was made of a program's, by passes say, with any operators.

    Args:
        graph_module: the graph.
        exported_program: the program, whose inputs, outputs and constants the graph has.
        reuse_server, no_open_in_browser, kwargs: as for `visualize`.

    Raises:
        RunError: Model Explorer is not installed.
    """
    whole = _program_of(exported_program)
    shown = ExportedProgram(
        root=graph_module,
        graph=graph_module.graph,
        graph_signature=whole.graph_signature,
        state_dict=whole.state_dict,
        range_constraints=whole.range_constraints,
        module_call_graph=whole.module_call_graph,
        example_inputs=whole.example_inputs,
        constants=whole.constants,
        verifiers=[_AnyOperator],
    )
    visualize(shown, reuse_server, no_open_in_browser, **kwargs)


class _AnyOperator(Verifier):
    dialect = "RUSHLIGHT_ANY_OPERATOR"

    def allowed_op_types(self) -> tuple[type, ...]:
        return (Callable,)  # type: ignore[return-value]


def visualize_with_clusters(
    exported_program: ExportedProgram,
    json_file_name: str | None = None,
    no_open_in_browser: bool = False,
    reuse_server: bool = False,
    get_node_partition_name: PartName = lambda node: node.meta.get("delegation_tag"),
    get_node_qdq_cluster_name: PartName = lambda node: node.meta.get("cluster"),
    **kwargs: Any,
) -> None:
    """Show a program whose nodes stand in the groups of their partition and of their cluster.

    Args:
        exported_program: the program, as a partitioner tagged it.
        json_file_name: write a file that Model Explorer opens, and show nothing.
        no_open_in_browser, reuse_server, kwargs: as for `visualize`.
        get_node_partition_name: the name of a node's partition, if it has one.
        get_node_qdq_cluster_name: the name of a node's cluster of quantised operators, likewise.

    Raises:
        RunError: Model Explorer is not installed.
        OSError: the file cannot be written.
    """
    config = _config(exported_program)
    [*_, graphs] = config.graphs_list
    numbers: dict[str, int] = {}
    for node, shown in zip(exported_program.graph.nodes, graphs["graphs"][0].nodes, strict=True):
        partition, cluster = get_node_partition_name(node), get_node_qdq_cluster_name(node)
        groups = []
        if partition is not None:
            number = numbers.setdefault(partition, len(numbers))
            groups.append(f"partition {number} ({_one_level(partition)})")
        if cluster is not None:
            groups.append(f"cluster ({_one_level(cluster)})")
        shown.namespace = "/".join(groups)
    if json_file_name is not None:
        write_text(Path(json_file_name), json.dumps(_collection(config)))
        return
    if reuse_server:
        config.set_reuse_server()
    visualize_model_explorer(config=config, no_open_in_browser=no_open_in_browser, **kwargs)


def _one_level(name: str) -> str:
    """A name as one group: "/" would begin another one inside it."""
    return name.replace("/", ":")


def _program_of(visualizable: Visualizable) -> ExportedProgram:
    if isinstance(visualizable, EdgeProgramManager | ExecutorchProgramManager):
        return visualizable.exported_program()
    if isinstance(visualizable, ExportedProgram):
        return visualizable
    raise RunError(
        f"a {type(visualizable).__name__} is no program: give an ExportedProgram, an "
        "EdgeProgramManager or an ExecutorchProgramManager",
        code=Code.INVALID_ARGUMENT,
    )


def _config(program: ExportedProgram) -> Any:
    """Model Explorer's configuration with a program's graph."""
    explorer = _explorer()
    config = explorer.config()
    config.add_model_from_pytorch(
        _TITLE, exported_program=program, settings=explorer.consts.DEFAULT_SETTINGS
    )
    return config


def _collection(config: Any) -> dict[str, Any]:
    """The graphs of a configuration as the file that Model Explorer's page opens."""
    [text, *_] = json.loads(config.get_transferrable_data()["graphs_list"])
    graphs = [{**graph, "collectionLabel": _TITLE} for graph in json.loads(text)["graphs"]]
    levels = [{"graph": graph, "level": level} for level, graph in enumerate(graphs)]
    return {"label": _TITLE, "graphs": graphs, "graphsWithLevel": levels}

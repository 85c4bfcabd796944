"""Real Model Explorer shows our graphs by ExecuTorch's functions, in a server without a browser."""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import torch

import rushlight as rl
from rushlight.devtools import visualization as shown

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.full
Patch = pytest.MonkeyPatch


@pytest.fixture
def explorer(viewers: Path, monkeypatch: Patch) -> None:
    """Model Explorer in this process, after all packages that are here anyway."""
    sites = [viewers, ROOT / ".venv-executorch"]
    folders = [str(path) for site in sites for path in site.glob("lib/python*/site-packages")]
    monkeypatch.setattr(sys, "path", [*sys.path, *folders])
    monkeypatch.setenv("PATH", f"{viewers / 'bin'}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def edge() -> rl.EdgeProgramManager:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval()
    return rl.to_edge(torch.export.export(model, (torch.ones(1, 3),)))


def _free_port() -> int:
    """One of those among which a running server is looked for."""
    for port in range(8081, 8100):
        with socket.socket() as tried:
            if tried.connect_ex(("localhost", port)):
                return port
    pytest.skip("all ports of Model Explorer are taken")


def test_nodes_stand_in_their_groups(
    explorer: None, edge: rl.EdgeProgramManager, tmp_path: Path
) -> None:
    program = edge.exported_program()
    linear, relu = (node for node in program.graph.nodes if node.op == "call_function")
    linear.meta["delegation_tag"] = relu.meta["delegation_tag"] = "tag/0"
    relu.meta["cluster"] = "c/1"
    shown.visualize_with_clusters(program, str(tmp_path / "graph.json"))
    [graph] = json.loads((tmp_path / "graph.json").read_text())["graphs"]
    spaces = {node["id"]: node["namespace"] for node in graph["nodes"]}
    assert spaces[linear.name] == "partition 0 (tag:0)"
    assert spaces[relu.name] == "partition 0 (tag:0)/cluster (c:1)"
    assert {space for name, space in spaces.items() if name not in (linear.name, relu.name)} == {""}


def test_programs_of_all_stages_are_shown(explorer: None, edge: rl.EdgeProgramManager) -> None:
    port = _free_port()
    with shown.SingletonModelExplorerServer(open_in_browser=False, port=port):
        with shown.SingletonModelExplorerServer(open_in_browser=False):
            pass

        def served() -> list[str]:
            url = f"http://localhost:{port}/api/v1/load_graphs_json?graph_index=0"
            graphs: Any = json.load(urllib.request.urlopen(url, timeout=30))
            return [node["label"] for node in graphs["graphs"][0]["nodes"]]

        for program in (edge, edge.exported_program(), edge.to_executorch()):
            shown.visualize(program, no_open_in_browser=True)
            assert any("relu" in label for label in served())
        graph_module = edge.exported_program().graph_module
        [relu] = [node for node in graph_module.graph.nodes if "relu" in str(node.target)]
        relu.target = torch.ops.aten.gelu.default
        shown.visualize_graph(graph_module, edge, no_open_in_browser=True)
        assert any("gelu" in label for label in served())
    assert shown.SingletonModelExplorerServer.server is None
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("localhost", port), 1)

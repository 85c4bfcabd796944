"""Opens files with Model Explorer's own adapters for ExecuTorch, and prints as JSON what they show:
`model_explorer_side.py FILE...`; "x.etrecord+y.etdp" is a record with the times of a trace over it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def graphs_of(path: Path) -> dict[str, Any]:
    """By graph, its nodes, and the graphs of delegates."""
    if path.suffix == ".pte":
        from pte_adapter_model_explorer.main import PTEAdapter as Adapter
    else:
        from etrecord_adapter_model_explorer.main import ETRecordAdapter as Adapter
    told = Adapter().convert(str(path), {})
    collections = told.get("graphCollections")
    graphs = [g for one in collections for g in one.graphs] if collections else told["graphs"]
    return {graph.id: graph for graph in graphs}


def shown(graph: Any) -> list[dict[str, Any]]:
    return [
        {
            "label": node.label,
            "namespace": node.namespace,
            "inputs": len(node.incomingEdges),
            "attributes": {str(a.key): str(a.value) for a in node.attrs},
        }
        for node in graph.nodes
    ]


def overlay(record: Path, trace: Path) -> dict[str, Any]:
    """By metric, its values, and how many operators of the graph have debug handles."""
    from etdump_data_provider_model_explorer.provider import ETDumpProfilingOverlayProvider

    [graph] = graphs_of(record).values()
    values = {"etdump_path": str(trace)}
    told = ETDumpProfilingOverlayProvider().run("", str(record), graph.id, values, graph)
    if told.error:
        return {"error": told.error}
    labels = {node.id: node.label for node in graph.nodes}
    handled = [n.label for n in graph.nodes if any(a.key == "debug_handle" for a in n.attrs)]
    metrics = {
        one.name: {f"{labels[at]} {at}": result.value for at, result in one.results.items()}
        for one in told.result
    }
    return {"operators": handled, "metrics": metrics}


def main() -> None:
    told = {}
    for name in sys.argv[1:]:
        record, _, trace = name.partition("+")
        if trace:
            told[Path(trace).name] = overlay(Path(record), Path(trace))
        else:
            graphs = graphs_of(Path(name))
            told[Path(name).name] = {id: shown(graph) for id, graph in graphs.items()}
    print(json.dumps(told))


if __name__ == "__main__":
    main()

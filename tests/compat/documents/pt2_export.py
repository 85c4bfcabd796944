"""PT2 Export: soundness, shapes as a contract, control flow, decompositions, saved programs."""

import io

import torch
from executorch.exir import load, save, to_edge
from executorch.runtime import Runtime
from torch.export import Dim, export


class MatMul(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def refused(function, *args):
    try:
        function(*args)
    except Exception as error:
        return str(error)
    raise AssertionError(f"{function} took {args}")


def run(program, *args):
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return method.execute(list(args))[0]


# Static shapes: the example's are the contract, before lowering and after.
static = export(MatMul(), (torch.randn(4, 3), torch.randn(3, 5)))
good, bad = (torch.randn(4, 3), torch.randn(3, 5)), (torch.randn(2, 3), torch.randn(3, 5))
torch.testing.assert_close(static.module()(*good), good[0] @ good[1])
refused(static.module(), *bad)
lowered = to_edge(static).to_executorch()
torch.testing.assert_close(run(lowered, *good), good[0] @ good[1])
text = refused(run, lowered, *bad)
assert "size 0 is 2" in text and "allowed 4" in text, text

# Dynamic shapes by names; a dimension that both inputs have is one.
batch, inner = Dim("batch", min=1, max=16), Dim("inner", min=2, max=8)
dynamic = export(MatMul(), good, dynamic_shapes={"a": {0: batch, 1: inner}, "b": {0: inner}})
lowered = to_edge(dynamic).to_executorch()
for rows, columns in ((1, 2), (16, 8), (4, 3)):
    args = (torch.randn(rows, columns), torch.randn(columns, 5))
    torch.testing.assert_close(run(lowered, *args), args[0] @ args[1])
refused(dynamic.module(), torch.randn(4, 3), torch.randn(2, 5))
refused(run, lowered, torch.randn(17, 3), torch.randn(3, 5))


# A path that depends on data is refused; torch.cond keeps both.
class Path(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x.sin()
        return x.cos()


class Both(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


x = torch.randn(3).abs()
refused(export, Path(), (x,))
both = to_edge(export(Both(), (x,))).to_executorch()
torch.testing.assert_close(run(both, x), x.sin())
torch.testing.assert_close(run(both, -x), (-x).cos())

# Decompositions: to the core, and without one operator that a backend has itself.
gelu = export(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU()), (torch.randn(2, 3),))
core = {str(node.target) for node in gelu.run_decompositions().graph.nodes}
table = torch.export.default_decompositions()
table.pop(torch.ops.aten.linear.default)
kept = {str(node.target) for node in gelu.run_decompositions(table).graph.nodes}
assert "aten.linear.default" in kept and "aten.linear.default" not in core

# Saved and loaded with code, weights and shapes.
file = io.BytesIO()
save(dynamic, file)
file.seek(0)
again = load(file)
args = (torch.randn(7, 5), torch.randn(5, 5))
torch.testing.assert_close(run(to_edge(again).to_executorch(), *args), args[0] @ args[1])
print("done")

"""The modules of a bundled program's tables, as `table_modules` makes them: `Tensor.TensorT`, …"""

from __future__ import annotations

from types import ModuleType
from typing import get_args

from rushlight.devtools.table_modules import TableModules
from rushlight.schema import bundled_program as fb
from rushlight.schema.common import ScalarType as _ScalarType

_MODULES = TableModules(fb.BUNDLED_PROGRAM, __name__)

ScalarType = type("ScalarType", (), {kind.name.upper(): int(kind) for kind in _ScalarType})
Bool = _MODULES.table(fb.Bool)
BundledMethodTestCase = _MODULES.table(fb.BundledMethodTestCase)
BundledMethodTestSuite = _MODULES.table(fb.BundledMethodTestSuite)
BundledProgram = _MODULES.table(fb.BundledProgram)
CaseNotes = _MODULES.table(fb.CaseNotes)
Double = _MODULES.table(fb.Double)
Int = _MODULES.table(fb.Int)
Tensor = _MODULES.table(fb.Tensor)
Value = _MODULES.table(fb.Value)
ValueUnion: ModuleType = _MODULES.union("ValueUnion", get_args(fb.ValueUnion))

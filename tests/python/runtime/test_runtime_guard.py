"""Files that change under a loaded module: watched (`guard`), or read into memory (`map=False`)."""

from __future__ import annotations

import os
import pathlib
import struct
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from runtime_programs import add, counter, data_file, program, with_external_weight

import rushlight as rl
from rushlight import files
from rushlight.errors import Code
from rushlight.runtime.stepping import Stepper

ONES = np.ones((2, 2), np.float32)


def overwrite(path: pathlib.Path) -> None:
    with open(path, "r+b") as file:
        file.write(bytes(path.stat().st_size))


def write_back_the_time(path: pathlib.Path) -> None:
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[pathlib.Path], None], str]] = {
    "cut": (lambda p: os.truncate(p, 10), r"it had \d+ bytes, now it has 10"),
    "emptied": (lambda p: p.write_bytes(b""), r"it had \d+ bytes, now it has 0"),
    "longer": (lambda p: os.truncate(p, 1 << 20), r"now it has 1048576"),
    "overwritten": (overwrite, "it was written to"),
    "touched": (os.utime, "it was written to"),
    "written with its time": (write_back_the_time, "its status is another"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", ["program", "data"])
def test_every_use_of_a_changed_file_is_refused(
    tmp_path: pathlib.Path, which: str, change: str
) -> None:
    paths = {"program": tmp_path / "w.pte", "data": tmp_path / "w.ptd"}
    paths["program"].write_bytes(with_external_weight())
    paths["data"].write_bytes(data_file(3))
    module = rl.load(paths["program"], data=paths["data"], guard=True)
    np.testing.assert_array_equal(module(ONES), ONES * 3)
    clone, out = module.clone(), np.zeros((2, 2), np.float32)
    make_change, what = CHANGES[change]
    make_change(paths[which])
    uses: list[Callable[[], object]] = [
        lambda: module(ONES),
        lambda: module["forward"](ONES),
        lambda: module.execute_into([out], ONES),
        lambda: clone(ONES),
        module.clone,
        module.fork,
        lambda: module.memory,
        lambda: list(module.state),
        module.state.snapshot,
    ]
    for use in uses:
        with pytest.raises(rl.RunError, match=rf"w\.pt[ed] was changed after .*{what}") as caught:
            use()
        assert caught.value.code == Code.ACCESS_FAILED
        assert "load it again" in str(caught.value)
    assert not out.any()
    module.close()


def test_a_file_that_is_replaced_is_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(add(2, 2))
    module = rl.load(path, guard=True)
    with files.replacing(path) as file:
        file.write(add(3, 3))
    np.testing.assert_array_equal(module(ONES, ONES), ONES * 2)
    path.unlink()
    np.testing.assert_array_equal(module.clone()(ONES, ONES), ONES * 2)


def test_a_change_right_after_the_load_is_seen(tmp_path: pathlib.Path) -> None:
    """Two writes within a tick of the system's clock leave the same time."""
    for i in range(20):
        path = tmp_path / f"{i}.pte"
        path.write_bytes(add(2, 2))
        module = rl.load(path, guard=True)
        overwrite(path)
        with pytest.raises(rl.RunError, match="was changed"):
            module(ONES, ONES)


def test_between_steps(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "counter.pte"
    path.write_bytes(program(counter(), constants=[struct.pack("<f", 1.0)]))
    stepper = Stepper(path, "forward", [np.ones(2, np.float32)], guard=True)
    assert stepper.step() == 0
    overwrite(path)
    for use in (stepper.step, stepper.outputs, lambda: stepper.value(0)):
        with pytest.raises(rl.RunError, match="was changed"):
            use()


def test_a_module_in_memory_is_not_concerned(tmp_path: pathlib.Path) -> None:
    program_path, data_path = tmp_path / "w.pte", tmp_path / "w.ptd"
    program_path.write_bytes(with_external_weight())
    data_path.write_bytes(data_file(3))
    for guard in (False, True):
        module = rl.load(program_path, data=data_path, map=False, guard=guard)
        for path in (program_path, data_path):
            path.write_bytes(bytes(10))
        np.testing.assert_array_equal(module(ONES), ONES * 3)
        np.testing.assert_array_equal(module.clone()(ONES), ONES * 3)
        program_path.write_bytes(with_external_weight())
        data_path.write_bytes(data_file(3))
    module = rl.load(with_external_weight(), data=data_file(3), guard=True)
    np.testing.assert_array_equal(module(ONES), ONES * 3)


def test_threads_that_share_a_guarded_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(add(2, 2))
    module = rl.load(path, guard=True)
    refused: list[str] = []
    started = threading.Barrier(3)

    def run(mine: rl.Module) -> None:
        started.wait()
        try:
            while True:
                np.testing.assert_array_equal(mine(ONES, ONES), ONES * 2)
        except rl.RunError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=run, args=(m,)) for m in (module, module.clone())]
    for thread in threads:
        thread.start()
    started.wait()
    os.utime(path)
    for thread in threads:
        thread.join(timeout=60)
    assert len(refused) == 2 and all("it was written to" in text for text in refused)


CUT = """
import os, sys
import numpy as np
import rushlight as rl
module = rl.load(sys.argv[1], guard=True)
x = np.ones((300, 300), np.float32)
module(x, x)
os.truncate(sys.argv[1], 0)
try:
    module(x, x)
except rl.RunError as error:
    print(error.code.name)
if len(sys.argv) > 2:
    module.close()
print("ends")
"""


@pytest.mark.parametrize("close", [[], ["close"]])
def test_a_process_survives_a_file_that_was_cut(tmp_path: pathlib.Path, close: list[str]) -> None:
    path = tmp_path / "add.pte"
    path.write_bytes(add(300, 300))
    done = subprocess.run(
        [sys.executable, "-c", CUT, path, *close], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "ACCESS_FAILED\nends\n"), done.stderr

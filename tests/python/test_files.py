"""Writing files: a file is written completely or not at all, and replaces the old one."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rushlight as rl
from rushlight import files
from rushlight.inspect import report_of


def listed(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_is_new_and_who_has_the_old_one_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with open(path, "rb") as old:
        with files.replacing(path) as file:
            file.write(b"new")
            assert path.read_bytes() == b"old"
        assert old.read() == b"old"
    assert path.read_bytes() == b"new" and listed(tmp_path) == ["a"]


def test_nothing_is_left_of_what_was_broken_off(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    with (
        pytest.raises(KeyboardInterrupt),
        files.replacing_all([tmp_path / "a", tmp_path / "b"]) as (a, b),
    ):
        a.write(b"new")
        b.write(b"new")
        raise KeyboardInterrupt
    assert listed(tmp_path) == ["b"] and (tmp_path / "b").read_bytes() == b"old"


def test_all_are_whole_before_the_first_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "c").mkdir()
    with pytest.raises(IsADirectoryError), files.replacing_all([tmp_path / "a", tmp_path / "c"]):
        pass
    assert (tmp_path / "a").read_bytes() == b"old" and listed(tmp_path) == ["a", "c"]


SPACE = """
import resource, sys
from rushlight import files
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with files.replacing_all([sys.argv[1], sys.argv[2]]) as (a, b):
        a.write(b"small")
        b.write(bytes(10000))
except OSError as error:
    print(error.strerror)
"""


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"old")
    told = subprocess.run(
        [sys.executable, "-c", SPACE, tmp_path / "a", tmp_path / "b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "File too large\n"
    assert listed(tmp_path) == ["b"] and (tmp_path / "b").read_bytes() == b"old"


def test_permissions_are_those_of_a_plain_open(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "new", "ä")
        (tmp_path / "plain").write_text("ä", encoding="utf-8")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("new", "plain")]
    assert modes == [0o640, 0o640]
    (tmp_path / "new").chmod(0o604)
    files.write_text(tmp_path / "new", "again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_stays_unless_for_root(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(PermissionError):
        files.write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"


def test_links_stay_and_lead_to_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "real").write_text("old")
    (tmp_path / "link").symlink_to("folder/real")
    (tmp_path / "dangling").symlink_to(tmp_path / "folder" / "other")
    files.write_text(tmp_path / "link", "new")
    files.write_text(tmp_path / "dangling", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "dangling").is_symlink()
    assert (tmp_path / "folder" / "real").read_text() == "new"
    assert listed(tmp_path / "folder") == ["other", "real"]


def test_a_link_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        files.write_text(tmp_path / "a", "new")


def test_what_is_no_file_is_written_as_it_comes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    contents: list[bytes] = []
    reader = threading.Thread(target=lambda: contents.append(pipe.read_bytes()))
    reader.start()
    files.write_text(pipe, "through the pipe")
    reader.join(timeout=30)
    assert contents == [b"through the pipe"] and pipe.is_fifo()
    files.write_text("/dev/null", "away")
    assert not Path("/dev/null").is_file()


def test_only_files_are_opened_to_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/null"):  # a pipe would wait for a writer
        with pytest.raises(OSError, match="it is a directory, a pipe or a device, not a file"):
            files.open_file(path)
        with pytest.raises(rl.LoadError, match=r"cannot read .*a directory, a pipe or a device"):
            report_of(path)
    files.write_text(tmp_path / "a", "text")
    with files.open_file(tmp_path / "a") as file:
        assert file.read() == b"text"


def test_what_a_process_has_open_is_written_to(tmp_path: Path) -> None:
    """Standard output that leads to a file: with another in its place the rest would be lost."""
    script = "from rushlight import files; files.write_text('/dev/stdout', 'one'); print(' two')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert b"two" in (tmp_path / "out").read_bytes() and listed(tmp_path) == ["out"]


def test_the_working_folder_and_long_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "x" * 255
    files.write_text(name, "here")
    assert listed(tmp_path) == [name]


def test_a_new_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    with files.new_folder(tmp_path / "in" / "new") as folder:
        (folder / "a").write_text("a")
        assert not (tmp_path / "in" / "new").exists()
    assert listed(tmp_path / "in") == ["new"] and listed(tmp_path / "in" / "new") == ["a"]
    with pytest.raises(FileExistsError), files.new_folder(tmp_path / "in" / "new"):
        pass
    with pytest.raises(ValueError), files.new_folder(tmp_path / "in" / "other") as folder:
        (folder / "a").write_text("a")
        raise ValueError
    assert listed(tmp_path / "in") == ["new"]


def test_the_disk_is_asked_before_the_place_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old" and listed(tmp_path) == ["a"]


# Files of temporary folders, which nobody else reads; what is in `new_folder`; the kernel's own.
WRITE_IN_PLACE = {
    "accuracy/trials.py": 2,  # and a line at the end of the journal
    "backends/coreml/preprocess.py": 3,
    "check/to_run.py": 1,
    "cli/common.py": 1,
    "peers/runtimes.py": 2,
    "peers/side.py": 1,
    "selective/build.py": 1,  # in a temporary folder
    "files.py": 2,
}


def test_every_writer_of_the_package_goes_through_this_module() -> None:
    package = Path(files.__file__).parent
    modes = {}
    for path in package.rglob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if is_write(n)]
        if calls:
            modes[path.relative_to(package).as_posix()] = len(calls)
    assert modes == WRITE_IN_PLACE


def is_write(node: ast.AST) -> bool:
    """A call that opens a file for writing, or writes one."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in ("write_text", "write_bytes") and isinstance(node.func, ast.Attribute):
        return True
    modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
    return name == "open" and any(str(m)[:1] in ("w", "a", "x") and len(str(m)) < 4 for m in modes)

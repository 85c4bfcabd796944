"""``python -m benchmarks [NAME ...] [OPTIONS]``: run these benchmarks, or all.

Options go to every script that is run; ``python -m benchmarks NAME --help`` lists them. ``llm``
stands for all of language models beside their peers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FOLDERS = (".", "llm", "tools")
NOT_BENCHMARKS = ("__main__",)
GROUPS = {"llm": ("llm_speed", "llm_texts", "llm_load", "llm_export")}


def main(arguments: list[str]) -> int:
    """Run the named benchmarks; the first status that is not 0, or 0."""
    files = [p for folder in FOLDERS for p in FOLDER.glob(f"{folder}/*.py")]
    scripts = {p.stem: p for p in files if '__name__ == "__main__"' in p.read_text()}
    known = sorted(name for name in scripts if name not in NOT_BENCHMARKS)
    arguments = [name for a in arguments for name in GROUPS.get(a, (a,))]
    named = [a for a in arguments if a in known]
    rest = [a for a in arguments if a not in known]
    if rest in (["-h"], ["--help"]) and not named:
        print(f"{__doc__}\nBenchmarks: {', '.join([*known, *GROUPS])}")
        return 0
    status = 0
    for name in named or known:
        print(f"== {name}", flush=True)
        status = subprocess.run([sys.executable, str(scripts[name]), *rest]).returncode or status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

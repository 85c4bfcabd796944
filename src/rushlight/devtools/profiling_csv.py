"""The events of a trace in a file of comma-separated values."""

from __future__ import annotations

import argparse
import os

from rushlight.devtools.inspector import Inspector
from rushlight.files import write_text

AnyPath = str | os.PathLike[str]


def generate_csv(etdump_path: AnyPath, output: AnyPath) -> None:
    """Write what `Inspector.to_dataframe` gives.

    Args:
        etdump_path: the trace (.etdp).
        output: the file to write.

    Raises:
        LoadError: the trace cannot be read.
        RunError: pandas is not installed.
        OSError: the file cannot be written.
    """
    write_text(output, Inspector(etdump_path=etdump_path).to_dataframe().to_csv())


def main() -> None:
    """`generate_csv` of the arguments of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--etdump_path", default="./model.etdump", help="the trace (.etdp)")
    parser.add_argument("--output", default="./model_profiling.csv", help="the file to write")
    options = parser.parse_args()
    generate_csv(options.etdump_path, options.output)
    print(f"wrote {options.output}: the events of {options.etdump_path}")


if __name__ == "__main__":
    main()

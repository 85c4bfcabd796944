"""The events of a trace as a table, from the command line of ExecuTorch's `inspector_cli`.

`rushlight profile` and `rushlight trace` tell more.
"""

from __future__ import annotations

import argparse

from rushlight.devtools.inspector import Inspector, compare_results
from rushlight.inspect import TimeScale

_SCALES = [scale.value for scale in TimeScale]


def main() -> None:
    """Print the events of a trace; as its arguments say, write them to a file, and compare outputs.

    Raises:
        LoadError: a file cannot be read.
        RunError: the units contradict each other.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--etdump_path", required=True, help="the trace (.etdp)")
    for name, unit in (("source", TimeScale.NS), ("target", TimeScale.MS)):
        parser.add_argument(
            f"--{name}_time_scale",
            choices=_SCALES,
            default=unit.value,
            help="the unit of the trace" if name == "source" else "the unit to show",
        )
    parser.add_argument("--etrecord_path", help="the record of the export (.etrecord)")
    parser.add_argument("--debug_buffer_path", help="the file of recorded values")
    parser.add_argument("--tsv_path", help="where to write the events, separated by tabs")
    parser.add_argument(
        "--compare_results",
        action="store_true",
        help="draw how far each run's outputs are from those that are expected",
    )
    options = parser.parse_args()
    inspector = Inspector(
        etdump_path=options.etdump_path,
        etrecord=options.etrecord_path,
        debug_buffer_path=options.debug_buffer_path,
        source_time_scale=TimeScale(options.source_time_scale),
        target_time_scale=TimeScale(options.target_time_scale),
    )
    inspector.print_data_tabular()
    if options.tsv_path:
        inspector.save_data_to_tsv(options.tsv_path)
    for block in inspector.event_blocks if options.compare_results else ():
        if block.name == "Execute":
            compare_results(block.reference_output, block.run_output, plot=True)


if __name__ == "__main__":
    main()

"""`rushlight recipes`: the ways to quantise a model."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rushlight.cli.common import TracebackOption, console, help_text, reports_errors
from rushlight.errors import Code, Error

NAME = "recipes"
HELP = help_text(
    "List the recipes that quantise a model: what `rushlight export --quantize` and "
    "rushlight.quantize take. NAME is a recipe, or a part of its name; without it all are listed.",
    (
        "rushlight recipes int8",
        "rushlight recipes dynamic",
        "rushlight recipes --json",
    ),
)


@reports_errors
def main(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help='"int8-dynamic", or a part: "dynamic".')
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.inspect.text import table_of
    from rushlight.quantization import RECIPES

    recipes = [recipe for recipe in RECIPES.values() if name is None or name in recipe.name]
    if not recipes:
        raise Error(
            f"no recipe with {name!r} in its name; there are {', '.join(RECIPES)}",
            code=Code.NOT_FOUND,
        )
    if as_json:
        keys = ("name", "meaning", "needs_data")
        typer.echo(json.dumps([{k: getattr(r, k) for k in keys} for r in recipes], indent=1))
        return
    table = table_of("", "recipe", "calibration data", "meaning")
    for recipe in recipes:
        table.add_row(recipe.name, "needed" if recipe.needs_data else "none", recipe.meaning)
    console().print(table)

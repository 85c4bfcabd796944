"""`python -m rushlight.cli`, where the script is not on the path."""

from rushlight.cli import app

app(prog_name="rushlight")

"""python -m hushgraph."""

from hushgraph.cli import app

app()

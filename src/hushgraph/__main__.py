"""python -m hushgraph."""

from __future__ import annotations

from hushgraph.cli import app

app()

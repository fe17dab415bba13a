"""Graphs beyond one machine, or beyond its memory: the same result to the bit, from files and pure tasks.

The nodes are cut into partitions, each with a ghost zone as deep as the polynomials reach, so a task computes its partition without
messages. Files are the only state: any task can run again, and a run that was killed goes on where it was. With a Dask client the
tasks run on its workers; without one they run here, one after the other, and the graph need not fit into memory.
"""

from typing import TYPE_CHECKING, Any

from hushgraph.contents import lazily

_CONTENTS = {
    "plan": ["plan", "Plan"],
    "prepare": ["prepare", "Prepared"],
    "denoise": ["denoise", "resume", "DenoisedFiles"],
}

__all__ = lazily(__name__, _CONTENTS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

"""Damaged files: what can happen to the bytes of a file, and what a call makes of it."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

import hushgraph as hg
from hushgraph._errors import HushgraphError

MASK = 0x15  # bits that are flipped in a byte


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ MASK]) + content[place + 1 :]


def damages(content):
    """Return other contents of a .npy file: a byte flipped in the magic, the header, the middle and at the end; cut off; empty."""
    header = 10 + int.from_bytes(content[8:10], "little")
    places = {"magic": 2, "header": 24, "shape": content.index(b"shape") + 10, "middle": (header + len(content)) // 2, "end": -1}
    others = {name: flipped(content, place % len(content)) for name, place in places.items() if place < len(content)}
    return {**others, "shorter": content[:-3], "half": content[: len(content) // 2], "empty": b""}


def outcomes(files, call, expected, *, names=None):
    """Return what `call` does with each damage of each file: "right", "other signal" or the name of the error, if it is no error of hushgraph.

    An error of hushgraph must name the damaged file. `names` limits the damages.
    """
    found = {}
    for path in files:
        whole = path.read_bytes()
        for name, content in damages(whole).items():
            if names is not None and name not in names:
                continue
            path.write_bytes(content)
            found[f"{path.parent.name}/{path.name}: {name}"] = _outcome(call, expected, path.name)
        path.write_bytes(whole)
    return found


def _outcome(call, expected, file):
    try:
        signal = call()
    except HushgraphError as error:
        return "refused" if file in str(error) else f"refused without its name: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "right" if np.array_equal(signal, expected) else "other signal"


def denoised(work, noisy, method):
    """Return a function that denoises from the start: nothing of a run before is used."""

    def call():
        for path in (work / "runs", *work.glob("graph-*/parts/*/labels.*"), *work.glob("graph-*/parts/*/groups.npy")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return hg.distributed.denoise(work, noisy, sigma=1.0, method=method, n_probes=1).read()

    return call


def graph_files(work):
    """Return the arrays of a prepared graph, without those that a run computes again."""
    return sorted([*work.glob("graph-*/*.npy"), *work.glob("graph-*/parts/*/rows.*.npy"), *work.glob("graph-*/parts/*/zone.*.npy")])


if __name__ == "__main__":  # in a process of its own: a wrong index may end it
    work, noisy, method = Path(sys.argv[1]), np.load(sys.argv[2]), sys.argv[3]
    os.fsync = lambda _: None
    call, files = denoised(work, noisy, method), [path for path in graph_files(work) if path.parent.name != "00001"]
    print(json.dumps(outcomes(files, call, call(), names=("shape", "middle", "end"))))

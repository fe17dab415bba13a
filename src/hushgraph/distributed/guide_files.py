"""Guides of a distributed run on their way into the work folder: public maps without noise, in files like the signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._arrays import values_digest
from hushgraph.distributed.addresses import is_files
from hushgraph.distributed.signals import release_values, store_signal
from hushgraph.distributed.store import Place, read_array
from hushgraph.distributed.wavelet_tasks import StoredGuide
from hushgraph.estimators import Guide, Kind, draw_marks, guides_of_maps, maps_of_noisy
from hushgraph.graphs import Noisy

Denoiser = Callable[[np.ndarray, float], np.ndarray]  # from noisy values and their sigma to a denoised map


def store_guides(work: Place, guides: Any, facts: dict[str, Any], signal: Place, denoised: Denoiser) -> tuple[StoredGuide, ...]:
    """Write guides into the work folder, and return them.

    Parameters
    ----------
    work : Path or StoredPath
        The work folder.
    guides : array, file, mapping, Noisy, DenoisedFiles, or a list of these
        As in `denoise`.
    facts : dict
        The manifest.
    signal : Path or StoredPath
        The file of the noisy signal; guides that are the same draw are refused.
    denoised : callable
        Removes the noise of a noisy map.

    Returns
    -------
    tuple of StoredGuide
        One for each kind of map.
    """
    if isinstance(guides, list | tuple | Mapping) and not guides:
        return ()
    marks = draw_marks(read_array(signal, whole=False))
    stored = []
    for guide in guides_of_maps(_maps(work, guides, facts, "guide"), marks):
        values = guide.values if guide.sigma is None else denoised(guide.values, guide.sigma)
        path = store_signal(work, np.asarray(values, dtype=np.float64), facts["n"], guide.name)
        stored.append(StoredGuide(guide.name, path.name, guide.made_from, guide.digests, tuple(sorted(guide.draws))))
    return tuple(stored)


def _maps(work: Place, given: Any, facts: dict[str, Any], name: str) -> Iterator[tuple[Kind | None, Guide]]:
    """Yield every map of what was given under this name; noisy maps have a kind, and those of one kind are combined."""
    from hushgraph.distributed.denoising import DenoisedFiles  # `denoising` imports this module

    if isinstance(given, Noisy):
        yield from maps_of_noisy(given, *release_values(given, None, facts), name)
    elif isinstance(given, DenoisedFiles):
        title = "denoised map" if name == "guide" else name
        yield None, _map(work, given.address, facts, title, "a denoised map", frozenset(given.details.get("draws", ())))
    elif isinstance(given, Mapping) and not all(isinstance(value, Number) for value in given.values()):
        for key, value in given.items():
            yield from _maps(work, value, facts, str(key))
    elif isinstance(given, list | tuple) and not all(isinstance(one, Number) for one in given):
        for one in given:
            yield from _maps(work, one, facts, name)
    elif is_files(given):
        title = Path(str(given)).name.split(".")[0] if name == "guide" else name
        yield None, _map(work, given, facts, title)
    elif np.ndim(given) == 2:
        for k, column in enumerate(np.asarray(given).T):
            yield None, _map(work, column, facts, f"{name} {k + 1}")
    else:
        yield None, _map(work, given, facts, name)


def _map(
    work: Place, source: Any, facts: dict[str, Any], name: str, made_from: str = "a public map", draws: frozenset[str] = frozenset()
) -> Guide:
    """Return a map whose values are a mapped file of the work folder."""
    values = read_array(store_signal(work, source, facts["n"], name), whole=False)
    whole = np.asarray(values, dtype=np.float64)
    return Guide(name, values, made_from=made_from, digests=(values_digest(whole),), draws=draw_marks(values) | draws)

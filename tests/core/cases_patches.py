"""Cases for `patches.cpp`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from corpus import Case
from shapes import bell

SIDES = {"gaussian_patches": 5, "spectral_patches": 8}


def cases() -> Iterator[Case]:
    random = np.random.RandomState(4)
    for rows, columns in ((16, 16), (17, 40), (61, 23)):
        for name, image in _images(random, rows, columns).items():
            noisy = image + bell(random, rows, columns)
            for function, side in SIDES.items():
                variances = 0.5 + random.uniform(size=(rows - side + 1, columns - side + 1))
                guide, step = guide_of(noisy), 1 + side // 3
                pilots = (None,) if side == 5 else (None, image)
                for pilot in pilots:
                    label = f"{function} {name} {rows} {columns}" + " with a pilot" * (pilot is not None)
                    extra = () if side == 5 else (pilot,)
                    threshold = () if side == 5 else (2.7,)
                    out = np.zeros((rows, columns))
                    yield Case(label, function, (noisy, *extra, guide, variances, *threshold, step, 9, out))


def guide_of(image: np.ndarray) -> np.ndarray:
    """Return the image that patches are compared on, with 8 columns to spare."""
    guide = np.zeros((image.shape[0], image.shape[1] + 8), dtype=np.float32)
    guide[:, : image.shape[1]] = image
    return guide


def _images(random, rows, columns):
    """Return images without noise: nothing, stripes, steps, and values of very different sizes."""
    row, column = np.indices((rows, columns))
    return {
        "nothing": np.zeros((rows, columns)),
        "stripes": 10.0 * (column % 5 == 0),
        "steps": 3.0 * (row // 6) - 100.0 * (column > columns // 2),
        "wild": bell(random, rows, columns) * 10.0 ** random.randint(-6, 7, size=(rows, columns)),
    }

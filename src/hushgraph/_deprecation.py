"""Old names that still work for a while: they warn, and say the new name and the version in which the old one goes.

The rule (docs/contributing/public.md): an old name works for two minor versions. `tests/test_deprecation.py` fails when the package reaches the
version in which one must go.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from hushgraph._errors import InputTypeError

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str, *, removed_in: str, stacklevel: int = 2) -> None:
    """Warn that `old` is called `new` now.

    Parameters
    ----------
    old, new : str
        The names, as a user writes them.
    removed_in : str
        The version in which the old name goes: "0.3".
    stacklevel : int
        1: the warning names the line that calls this function; 2: the line that calls the function around it; and so on.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_renamed("hushgraph.app", "hushgraph.explorer", removed_in="0.3")
    >>> print(seen[0].message)
    hushgraph.app is called hushgraph.explorer now; the old name will go in 0.3
    """
    warnings.warn(f"{old} is called {new} now; the old name will go in {removed_in}", DeprecationWarning, stacklevel=stacklevel + 1)


def renamed(*, removed_in: str, **new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that accepts the old names of keyword arguments, with a DeprecationWarning.

    Parameters
    ----------
    removed_in : str
        The version in which the old names go.
    **new_names : str
        The new name of each old name: `@renamed(removed_in="0.3", scaled="threshold_scale")`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in new_names.keys() & kwargs.keys():
                new = new_names[old]
                if new in kwargs:
                    msg = f"{function.__name__} takes {new}= or its old name {old}=, not both; leave {old}= out"
                    raise InputTypeError.about(argument=old, expected="left out", hint=f"pass {new}= only", text=msg)
                warn_renamed(f"{old}= of {function.__name__}", f"{new}=", removed_in=removed_in)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate

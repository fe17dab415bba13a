"""Errors that hushgraph raises on purpose, and the sentences they carry. Their text is written here and safe to show; no other error's is.

Names of arguments and calls in a sentence are data, so that commands can say --max-nodes where Python says max_nodes=.
"""

from __future__ import annotations

import re


class Reference(str):
    """An argument or a call as Python writes it: `sigma`, `sigma=`, `weight=False`, `Ledger.create(path, ...)`."""

    __slots__ = ()


def argument(name: str) -> str:
    """The reference to the argument of that name; a text that is no name stays plain text."""
    return Reference(name) if name.isidentifier() else name


class Sentence(str):
    """A sentence as Python says it, that remembers which of its parts are references.

    In the template `{}`, `{:,}` and `{!r}` take the values in their order, and all else in braces is a reference. Values are never
    looked into; those that are references or sentences keep what they are. What is joined to a sentence by f-strings or + is plain text.

    Examples
    --------
    >>> text = Sentence("give {weight=} or {weight=False}; got {!r}", "{sigma=2}")
    >>> print(text)
    give weight= or weight=False; got '{sigma=2}'
    >>> [part for part in text.parts if isinstance(part, Reference)]
    ['weight=', 'weight=False']
    """

    parts: tuple[str, ...]

    def __new__(cls, template: str, *values: object) -> Sentence:
        rest, parts = iter(values), []
        for k, text in enumerate(re.split(r"\{(.*?)\}", template)):
            if k % 2 == 0:
                parts.append(text)
            elif text[:1] not in ("", ":", "!"):
                parts.append(Reference(text))
            else:
                parts.extend(_parts_of(next(rest), text))
        return cls.of(tuple(filter(None, parts)))

    @classmethod
    def of(cls, parts: tuple[str, ...]) -> Sentence:
        """The sentence that is made of these parts."""
        sentence = super().__new__(cls, "".join(parts))
        sentence.parts = parts
        return sentence

    def __reduce__(self):
        return Sentence.of, (self.parts,)


def _parts_of(value: object, form: str) -> tuple[str, ...]:
    if isinstance(value, Sentence):
        return value.parts
    return (value,) if isinstance(value, Reference) else (f"{{{form}}}".format(value),)


class HushgraphError(Exception):
    """An error that hushgraph raises on purpose: it says what was expected, what came and what to do, and quotes no private value."""

    @property
    def sentence(self) -> str:
        """What it says, without the number that errors of the operating system have."""
        return self.args[-1] if self.args else ""


class InputError(HushgraphError, ValueError):
    """A value, or what a file holds, cannot be used."""


class InputTypeError(HushgraphError, TypeError):
    """An object is of a kind that cannot be used."""


class ComputationError(HushgraphError, ArithmeticError):
    """A result did not come out as exactly as it must."""


class StateError(HushgraphError, RuntimeError):
    """Something outside the arguments stands in the way: a device, a worker, a work folder."""


class MissingPackageError(HushgraphError, ImportError):
    """A package that is an extra is not there, or cannot be imported."""


class PathError(HushgraphError, OSError):
    """A file or port cannot be used."""


class NoFileError(HushgraphError, FileNotFoundError):
    """A file is not there."""


class FileThereError(HushgraphError, FileExistsError):
    """A file is there that would be lost."""


class FolderThereError(HushgraphError, IsADirectoryError):
    """A folder is where a file should be."""


class NoFolderError(HushgraphError, NotADirectoryError):
    """A file is where a folder should be."""


class NotAllowedError(HushgraphError, PermissionError):
    """The operating system does not allow to write there."""

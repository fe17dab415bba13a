"""The errors that hushgraph raises on purpose, and their sentences.

hushgraph writes these sentences itself, and they quote no private value: the commands show them, and the text of no other error.
A sentence keeps the names of arguments and calls as data, so that commands write --max-nodes where Python writes max_nodes=.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from string import Formatter
from typing import Any, Self

_FORMATTER = Formatter()


class Reference(str):
    """An argument or a call as Python writes it: `sigma`, `sigma=`, `weight=False`, `Ledger.create(path, ...)`."""

    __slots__ = ()


def argument(name: str) -> str:
    """Return the reference to the argument of that name; a text that is not a Python name stays plain text."""
    return Reference(name) if name.isidentifier() else name


class Sentence(str):
    """A sentence as Python says it, with its references kept as data.

    The template is a format string. `{}`, `{:,}` and `{!r}` take the values in order; any other text in braces is a reference. The text
    of a value is never interpreted. A value that is a reference or a sentence keeps its references; an f-string or + makes it plain text.

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
        parts: list[str] = []
        remaining = iter(values)
        for text, field, form, conversion in _FORMATTER.parse(template):
            parts.append(text)
            if field:
                parts.append(Reference(field))
            elif field is not None:
                parts.extend(_parts_of(next(remaining), form or "", conversion))
        return cls.of(tuple(filter(None, parts)))

    @classmethod
    def of(cls, parts: tuple[str, ...]) -> Sentence:
        """Return the sentence made of these parts."""
        sentence = super().__new__(cls, "".join(parts))
        sentence.parts = parts
        return sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return Sentence.of, (self.parts,)


def _parts_of(value: object, form: str, conversion: str | None) -> tuple[str, ...]:
    if isinstance(value, Sentence):
        return value.parts
    return (value,) if isinstance(value, Reference) else (format(_FORMATTER.convert_field(value, conversion), form),)


class HushgraphError(Exception):
    """An error that hushgraph raises on purpose: it says what was expected, what came and what to do, and quotes no private value."""

    @property
    def sentence(self) -> str:
        """The message, without the number that errors of the operating system have."""
        return self.args[-1] if self.args else ""


class _AboutArgument:
    """The parts of an error about one argument, for programs that handle it; None for errors that were not made by `about`."""

    argument: str | None = None
    expected: str | None = None
    got: str | None = None
    hint: str | None = None

    @classmethod
    def about(cls, *, argument: str, expected: str, got: object = None, hint: str = "", verb: str = "be", text: str = "") -> Self:
        """Return the error "`argument` must `verb` `expected`; got `got`; `hint`", with these parts as attributes.

        Parameters
        ----------
        argument : str
            The name of the argument, as the caller knows it.
        expected : str
            What the argument must be: "a number above 0".
        got : object, optional
            Description of the given value. Describe values with `shown`, which quotes no private data.
        hint : str, optional
            What the caller can do.
        verb : str, optional
            Another verb before `expected`: "have", "hold", "return".
        text : str, optional
            The whole message, where "must" does not say it well; the other parts are attributes only.

        Examples
        --------
        >>> error = InputError.about(argument="sigma", expected="a positive number", got=-1, hint="pass a standard deviation")
        >>> str(error), error.argument
        ('sigma must be a positive number; got -1; pass a standard deviation', 'sigma')
        """
        error = cls(text or _sentence_about(argument, verb, expected, got, hint))  # type: ignore[call-arg]
        error.argument, error.expected, error.got, error.hint = argument, expected, None if got is None else str(got), hint or None
        return error


def _sentence_about(name: str, verb: str, expected: str, got: object, hint: str) -> Sentence:
    sentence = Sentence("{} must {} {}", argument(name), verb, expected)
    if got is not None:
        sentence = Sentence("{}; got {}", sentence, got)
    return Sentence("{}; {}", sentence, hint) if hint else sentence


class InputError(_AboutArgument, HushgraphError, ValueError):
    """A value, or the content of a file, cannot be used."""


class InputTypeError(_AboutArgument, HushgraphError, TypeError):
    """An object has a type that cannot be used."""


class ComputationError(HushgraphError, ArithmeticError):
    """A result is not as exact as it must be."""


class StateError(HushgraphError, RuntimeError):
    """Something other than an argument prevents the work: a device, a worker, a work folder."""


class MissingPackageError(HushgraphError, ImportError):
    """An optional package is not installed, or cannot be imported."""


class PathError(HushgraphError, OSError):
    """A file or port cannot be used."""


class NoFileError(HushgraphError, FileNotFoundError):
    """A file does not exist."""


class FileThereError(HushgraphError, FileExistsError):
    """A file exists and would be overwritten."""


class FolderThereError(HushgraphError, IsADirectoryError):
    """A folder is where a file should be."""


class NoFolderError(HushgraphError, NotADirectoryError):
    """A file is where a folder should be."""


class NotAllowedError(HushgraphError, PermissionError):
    """The operating system does not allow writing to this place."""


class ImportantWarning(UserWarning):
    """A warning about a release that was paid for, or about what guards the budget; commands print it with --quiet too."""


def warn_without_raising(message: str, *, stacklevel: int = 2) -> None:
    """Warn, and never raise: where the filter of warnings makes an error of the warning, the message is printed on standard error.

    For code that holds what was paid for and would be lost with an exception.
    """
    try:
        warnings.warn(message, ImportantWarning, stacklevel=stacklevel + 1)
    except Exception:
        with contextlib.suppress(Exception):  # standard error may be closed
            print(f"warning: {message}", file=sys.stderr, flush=True)

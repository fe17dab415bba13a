"""What is loaded when it is first used: the names of a package (PEP 562), and packages that are extras. Knows nothing else."""

import sys
from importlib import import_module
from types import ModuleType

from hushgraph._errors import MissingPackageError


class Contents(ModuleType):
    """A package whose names live in its files; `denoise` stays the function, whoever imports the file of that name."""

    _home: dict[str, str]
    _packages: tuple[str, ...]

    def __getattr__(self, name):
        if name in self._home:
            return getattr(import_module(f"{self.__name__}.{self._home[name]}"), name)
        if name in self._packages:
            return import_module(f"{self.__name__}.{name}")
        msg = f"module {self.__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)

    def __setattr__(self, name, value):
        if isinstance(value, ModuleType) and self._home.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __reduce__(self):
        return import_module, (self.__name__,)  # as packages are pickled, by name

    def __dir__(self):
        return sorted({*self.__dict__, *self._home, *self._packages})


def lazily(package: str, contents: dict[str, list[str]], packages: tuple[str, ...] = ()) -> list[str]:
    """Make `package` offer the names that `contents` lists under its files; returns them all, for __all__."""
    module = sys.modules[package]
    module.__dict__["_home"] = {name: file for file, names in contents.items() for name in names}
    module.__dict__["_packages"] = packages
    module.__class__ = Contents
    return [*module.__dict__["_home"], *packages]


def extra(module: str, *, name: str, purpose: str) -> ModuleType:
    """An optional package, or an error that says what it is for and which extra of hushgraph brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == module.partition(".")[0]:
            msg = f"{purpose} needs {module}: pip install 'hushgraph[{name}]'"
            raise MissingPackageError(msg) from None
        msg = f"{purpose} needs {module}, which is installed but cannot be imported ({error}); mend it, or install it again: pip install 'hushgraph[{name}]'"
        raise MissingPackageError(msg) from error

"""The explorer: a page on this computer that shows what an epsilon costs and what denoising gives back."""

from typing import TYPE_CHECKING, Any

from hushgraph.contents import lazily

_CONTENTS = {"server": ["serve"]}

__all__ = lazily(__name__, _CONTENTS)

if TYPE_CHECKING:  # type checkers do not see the names that are loaded lazily

    def __getattr__(name: str) -> Any: ...

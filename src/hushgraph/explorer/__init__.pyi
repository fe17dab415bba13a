from .inputs import (
    check_inputs as check_inputs,
)
from .saved_releases import (
    SavedRelease as SavedRelease,
    checked_release_folder as checked_release_folder,
)
from .server import (
    serve as serve,
    web_server as web_server,
)

__all__ = [
    "serve",
]

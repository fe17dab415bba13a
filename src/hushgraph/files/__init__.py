"""Files: graphs and signals are read and written here, one module per format."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "read_graph",
    "write_graph",
    "read_signal",
    "write_signal",
]

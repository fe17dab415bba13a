"""What the tests of the ledger charge, and for whom."""

NAMES = {"dataset": "taxis", "unit": "passenger", "adjacency": "add-remove"}
KEY = bytes(range(32))
SMALL = {"sensitivity_squared": 1, "sigma": 100.0, "epsilon": 0.1, "delta": 1e-6}

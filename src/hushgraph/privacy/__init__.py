"""Private releases: how much noise, the noise itself, events and counts, the budget, the release and its certificate."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "classical_sigma",
    "analytic_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "lattice_step",
    "lattice_noise",
    "count_events",
    "declare_counts",
    "CountMap",
    "check_events",
    "EventCheck",
    "Ledger",
    "LedgerError",
    "BudgetExceeded",
    "LedgerTampered",
    "release",
    "Release",
    "Total",
    "simulate",
    "read_release",
    "verify_release",
    "plan_release",
    "Plan",
]

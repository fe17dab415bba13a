"""Private releases: how much noise, the noise itself, counting, the budget, the release. In the order in which data flows."""

from typing import TYPE_CHECKING, Any

from hushgraph.contents import lazily

_CONTENTS = {
    "calibration": ["classical_sigma", "analytic_sigma", "gaussian_delta", "gaussian_epsilon"],
    "noise": ["lattice_step", "lattice_noise"],
    "counting": ["count_events", "declare_counts", "CountMap"],
    "ledger": ["Ledger", "LedgerError", "BudgetExceeded", "LedgerTampered"],
    "release": ["release", "Release", "Total", "simulate"],
    "certificate": ["read_release", "verify_release"],
    "check": ["check_events", "EventCheck"],
    "plan": ["plan_release", "Plan"],
}
__all__ = lazily(__name__, _CONTENTS)

if TYPE_CHECKING:  # type checkers do not see the names that are loaded lazily

    def __getattr__(name: str) -> Any: ...

"""What a release asks for, checked in one place: by a command before it counts events, and by `release` before the charge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from hushgraph._errors import InputError, Sentence
from hushgraph.privacy.calibration import Mechanism, mechanism_sigma
from hushgraph.privacy.guarantee import checked_guarantee
from hushgraph.privacy.lattice import checked_lattice_sigma
from hushgraph.privacy.ledger.chain import LedgerSnapshot


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """The terms of a release that do not depend on the counts.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee for one unit; delta is at most 1/1000.
    mechanism : {"analytic", "classical"}
        Which theorem sigma comes from.
    public_graph : bool
        The owner's attestation that graph, windows and caps were fixed without looking at the data. Must be True.
    weak_guarantee : bool
        Needed for an epsilon above 10.
    """

    epsilon: float
    delta: float
    mechanism: Mechanism = "analytic"
    public_graph: bool = False
    weak_guarantee: bool = False

    def checked(self, ledger: LedgerSnapshot | None = None) -> ReleaseRequest:
        """Return the request with plain floats if it can be granted.

        With a snapshot of the ledger, its budget must allow the release. A release costs mu^2 = (sensitivity / sigma)^2, which epsilon,
        delta and mechanism determine, so a sensitivity of 1 stands for any, and nothing needs to be counted. Without a snapshot the
        budget is left to `Ledger.charge`, which makes the same check on the file itself.

        Parameters
        ----------
        ledger : LedgerSnapshot, optional
            The state of the ledger that is to be charged.

        Returns
        -------
        ReleaseRequest
            The same request.

        Raises
        ------
        ValueError
            If the terms are not fit for a release.
        BudgetExceeded
            If the budget does not allow it.
        """
        epsilon, delta = checked_guarantee(self.epsilon, self.delta, weak_guarantee=self.weak_guarantee)
        if self.public_graph is not True:
            msg = (
                "{public_graph=True} is needed: you attest that graph, windows and caps were fixed without looking at the data; a graph "
                "that was cut to the places with events gives these away"
            )
            raise InputError(Sentence(msg))
        request = replace(self, epsilon=epsilon, delta=delta)
        sigma = request._sigma(1)
        if ledger is not None:
            ledger.total_with(Fraction(1), sigma)
        return request

    def sigma(self, sensitivity_squared: int | Fraction) -> float:
        """Return the standard deviation of the noise for counts of this sensitivity; it must leave room for counts in 53 bits."""
        return checked_lattice_sigma(self._sigma(sensitivity_squared))

    def _sigma(self, sensitivity_squared: int | Fraction) -> float:
        return mechanism_sigma(self.mechanism, epsilon=self.epsilon, delta=self.delta, sensitivity_squared=sensitivity_squared)

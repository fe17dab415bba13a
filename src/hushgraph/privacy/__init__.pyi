from .bounding import (
    bounded_counts as bounded_counts,
)
from .calibration import (
    Mechanism as Mechanism,
    analytic_sigma as analytic_sigma,
    classical_sigma as classical_sigma,
    composed_epsilon as composed_epsilon,
    gaussian_delta as gaussian_delta,
    gaussian_epsilon as gaussian_epsilon,
    mechanism_sigma as mechanism_sigma,
)
from .checking import (
    ADVICE as ADVICE,
    PRIVATE as PRIVATE,
    EventCheck as EventCheck,
    check_events as check_events,
    columns_for_owner as columns_for_owner,
)
from .counting import (
    CountMap as CountMap,
    count_events as count_events,
    declare_counts as declare_counts,
)
from .csv_format import (
    CsvFormat as CsvFormat,
)
from .guarantee import (
    LARGEST_EPSILON as LARGEST_EPSILON,
    checked_guarantee as checked_guarantee,
    guarantee_in_words as guarantee_in_words,
    secret_in_words as secret_in_words,
)
from .guides import (
    check_guides as check_guides,
)
from .lattice import (
    lattice_noise as lattice_noise,
    lattice_step as lattice_step,
)
from .ledger.budget import (
    Ledger as Ledger,
)
from .ledger.chain import (
    BudgetExceeded as BudgetExceeded,
    LedgerError as LedgerError,
    LedgerTampered as LedgerTampered,
)
from .map_file import (
    REPORT as REPORT,
)
from .planning import (
    PLANNED_EPSILONS as PLANNED_EPSILONS,
    Plan as Plan,
    plan_release as plan_release,
)
from .publication import (
    add_report as add_report,
    certificate_with_map as certificate_with_map,
    export as export,
)
from .published_maps import (
    read_published as read_published,
)
from .release_request import (
    ReleaseRequest as ReleaseRequest,
)
from .releases import (
    Release as Release,
    Total as Total,
    check_ledger as check_ledger,
    read_release as read_release,
    release as release,
    simulate as simulate,
)
from .sensitivity import (
    cap_names as cap_names,
    squared_sensitivity as squared_sensitivity,
)
from .series_folder import (
    SeriesMap as SeriesMap,
    write_series as write_series,
)
from .verification import (
    verify_release as verify_release,
)

__all__ = [
    "classical_sigma",
    "analytic_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "lattice_step",
    "lattice_noise",
    "count_events",
    "CsvFormat",
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

from .demo import (
    Demo as Demo,
)
from .scipy_recurrence import (
    ScipyRecurrence as ScipyRecurrence,
)
from .stage import (
    machine as machine,
)

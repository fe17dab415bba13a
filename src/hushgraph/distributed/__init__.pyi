from .cost_model import (
    DistributedMethod as DistributedMethod,
)
from .denoising import (
    DenoisedFiles as DenoisedFiles,
    denoise as denoise,
    resume as resume,
)
from .planning import (
    Plan as Plan,
    plan as plan,
)
from .preparing import (
    Prepared as Prepared,
    prepare as prepare,
)
from .runner import (
    dask_distributed as dask_distributed,
)

__all__ = [
    "plan",
    "Plan",
    "prepare",
    "Prepared",
    "denoise",
    "resume",
    "DenoisedFiles",
]

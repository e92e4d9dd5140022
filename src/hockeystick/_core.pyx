# cython: boundscheck=False, wraparound=False, cdivision=True
"""The gate: convert, allocate, release the GIL, one C call, check the status, return. Nothing else."""

import numpy as np

from .bound import AccuracyError, DomainError

_STATUS = (
    (None, ""),
    (DomainError, "an argument lies outside the domain of the kernel"),
    (AccuracyError, "the lent scratch is too small"),
    (AccuracyError, "an iteration did not converge"),
    (AccuracyError, "the sum needs more nodes than its limit"),
    (AccuracyError, "the certified interval is too wide"),
    (AccuracyError, "an intermediate value does not fit a double"),
)


def check(int status, where="core"):
    """Raise the error that a status of the C floor stands for; HS_OK passes."""
    if status == 0:
        return
    if not 0 < status <= hs_status_last():
        raise AccuracyError(f"{where}: unknown status {status}", status)
    kind, message = _STATUS[status]
    raise kind(f"{where}: {message}", status)

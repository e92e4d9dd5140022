"""Real FFTs. The only file that knows pyfftw; it runs on scipy.fft where pyfftw is absent or HS_NO_PYFFTW=1.

Plans use FFTW_ESTIMATE, so that the last bits do not depend on timing, and are kept for short lengths; a plan serves
one thread at a time.

Accuracy. Both libraries compute a length-n transform, n = 2^a 3^b 5^c, as about log2(n) stages of orthogonal
butterflies with twiddles correct to about u = 2^-53. Such a product of stages satisfies
||computed - exact||_2 <= eta ||exact||_2 with eta <= 7 u log2(n) for radix 2 [Hig02, Thm 24.2]; `error_upper`
allows 16 u log2(n) for the mixed radices and the real-to-complex packing. This constant is cited, not proved
[theory: grid.fft], for a library that picks its own factorisation; measured errors are below u log2(n)
(benchmarks/bench_prv.py). Long doubles are transformed by scipy.fft, whose twiddles are long doubles too: u is
`LONG_U` then.
"""

from __future__ import annotations

import bisect
import math
import os
import threading
from collections import deque
from contextlib import contextmanager

import numpy as np

from .cells import ULP

PLAN_LENGTH = 1 << 17
"""Longest transform, all rows together, whose plan (and the two arrays it holds, 2 MB) is kept."""

LONG = 1 << 20
"""Length from which a transform takes longer than a signal should wait: tens of milliseconds."""

LENGTHS = sorted(odd << a for odd in (1, 3, 5, 9, 15, 25, 27, 45) for a in range(1, 48))
_plans: deque = deque(maxlen=32)  # lent to one call at a time, the least used drops out: popleft and append are atomic


def _pyfftw():
    """The pyfftw module, or None. Imported at the first transform, not with the package."""
    if os.environ.get("HS_NO_PYFFTW", "0") not in ("", "0"):
        return None
    try:
        import pyfftw
    except ImportError:
        return None
    return pyfftw


def fast_length(n: int) -> int:
    """The smallest of LENGTHS that is >= n."""
    return LENGTHS[bisect.bisect_left(LENGTHS, n)]


def error_upper(n: int, unit: float = ULP) -> float:
    """Bound on the relative Euclidean error of one transform of length n; see the head of the file."""
    return 16 * unit * math.log2(n)  # [theory: grid.fft]


def zeros(n: int) -> np.ndarray:
    """Zeroed float64 array, aligned for FFTW."""
    library = _pyfftw()
    return library.zeros_aligned(n, dtype=np.float64) if library else np.zeros(n)


def _lent(key):
    """A kept plan for this key, or None; it is nobody else's until `_execute` gives it back."""
    for _ in range(len(_plans)):
        try:
            found = _plans.popleft()
        except IndexError:
            return None
        if found[0] == key:
            return found[1]
        _plans.append(found)
    return None


@contextmanager
def lent_rows(count: int, n: int):
    """(array of `count` rows of even length n, function () that transforms them all, function () for a product of
    transforms).

    Transforms are the n/2 + 1 leading coefficients. Both arrays are the caller's until the end of the `with`; short
    ones are then used again, as touching fresh memory may take as long as a transform. The product outlives it: an
    array of its own, or the first row of the transforms where they are long."""
    library = _pyfftw()
    if library is None:
        import scipy.fft

        values = np.empty((count, n))
        yield values, lambda: scipy.fft.rfft(values), lambda: np.empty(n // 2 + 1, dtype=np.complex128)
        return
    plan = _lent((count, n))
    if plan is None:
        values, spectra = (
            library.empty_aligned((count, n)),
            library.empty_aligned((count, n // 2 + 1), dtype=np.complex128),
        )
        plan = library.FFTW(values, spectra, flags=("FFTW_ESTIMATE",))
    again = count * n <= PLAN_LENGTH

    def transform():
        _wait_for(plan.execute, count * n)
        return plan.output_array

    def product():
        return library.empty_aligned(n // 2 + 1, dtype=np.complex128) if again else plan.output_array[0]

    yield plan.input_array, transform, product
    if again:
        _plans.append(((count, n), plan))


def _wait_for(execute, size: int) -> None:
    """Execute; a long transform in a thread of its own, as a signal interrupts who waits for it."""
    if size <= LONG:
        execute()
    else:
        worker = threading.Thread(target=execute, daemon=True)
        worker.start()
        worker.join()


def _execute(library, source, target, direction, n_threads):
    """One transform."""
    key = direction, source.shape, target.shape, n_threads
    plan = _lent(key)
    if plan is None:
        plan = library.FFTW(source, target, direction=direction, flags=("FFTW_ESTIMATE",), threads=n_threads)
    else:
        plan.update_arrays(source, target)
    _wait_for(plan.execute, max(source.size, target.size))
    if max(source.size, target.size) <= PLAN_LENGTH:
        _plans.append((key, plan))


def forward(x: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """The n/2 + 1 leading coefficients of the transform of real x, from `zeros` or `inverse`; n is even."""
    library = _pyfftw()
    if library is None:
        import scipy.fft

        return scipy.fft.rfft(x, workers=n_threads)
    out = library.empty_aligned(x.shape[0] // 2 + 1, dtype=np.complex128)
    _execute(library, x, out, "FFTW_FORWARD", n_threads)
    return out


def backward(spec: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """n times the real array of even length n = 2 (len(spec) - 1) with this transform. `spec` comes from `forward` or
    `lent_rows`; it is destroyed."""
    library = _pyfftw()
    n = 2 * (spec.shape[0] - 1)
    if library is None:
        import scipy.fft

        return scipy.fft.irfft(spec, n, norm="forward", workers=n_threads)
    out = library.empty_aligned(n, dtype=np.float64)
    _execute(library, spec, out, "FFTW_BACKWARD", n_threads)
    return out


def inverse(spec: np.ndarray) -> np.ndarray:
    """The real array with this transform; see `backward`."""
    out = backward(spec, 1)
    out *= 1.0 / out.size
    return out


def forward_extended(x: np.ndarray) -> np.ndarray:
    """`forward` of real long doubles."""
    import scipy.fft

    return scipy.fft.rfft(x.astype(np.longdouble))


def inverse_extended(spec: np.ndarray) -> np.ndarray:
    """The real long doubles of even length 2 (len(spec) - 1) with this transform."""
    import scipy.fft

    return scipy.fft.irfft(spec, 2 * (spec.shape[0] - 1))

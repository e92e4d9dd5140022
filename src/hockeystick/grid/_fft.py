"""Real FFTs of even length, by scipy.fft, in double precision or in that of long doubles.

Accuracy. A transform of length n, n = 2^a 3^b 5^c, is computed as about log2(n) stages of orthogonal butterflies with
twiddles correct to about the unit u of its type, 2^-53 of doubles. Such a product of stages satisfies
||computed - exact||_2 <= eta ||exact||_2 with eta <= 7 u log2(n) for radix 2 [Hig02, Thm 24.2]; `error_upper`
allows 16 u log2(n) for the mixed radices and the real-to-complex packing. This constant is cited, not proved
[theory: grid.fft], for a library that picks its own factorisation; measured errors are below u log2(n)
(benchmarks/bench_prv.py).
"""

from __future__ import annotations

import math

import numpy as np

from .cells import ULP


def fast_length(n: int) -> int:
    """An even length >= n whose transforms are quick."""
    import scipy.fft  # at the first transform, not with the package

    return 2 * scipy.fft.next_fast_len((n + 1) // 2, real=True)


def error_upper(n: int, unit: float = ULP) -> float:
    """Bound on the relative Euclidean error of one transform of length n; see the head of the file."""
    return 16 * unit * math.log2(n)  # [theory: grid.fft]


def forward(x: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """The n/2 + 1 leading coefficients of the transform of each row of real numbers; n is even."""
    import scipy.fft

    return scipy.fft.rfft(x, workers=n_threads)


def inverse(spec: np.ndarray) -> np.ndarray:
    """The real array of even length 2 (len(spec) - 1) with this transform."""
    import scipy.fft

    return scipy.fft.irfft(spec, 2 * (spec.shape[0] - 1))

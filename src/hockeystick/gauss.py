"""Few points in place of many, with the same first moments."""

from __future__ import annotations

import numpy as np


def gauss_rule(x, w, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(points, weights) of the Gauss rule of `count` points of the weights w at x, or of fewer where these do, by
    Lanczos' recurrence with full reorthogonalisation."""
    total = w.sum()
    basis = np.empty((count, x.size))
    basis[0] = np.sqrt(w / total)
    diagonal, below = [], []
    for n in range(count):
        v, every = basis[n], basis[: n + 1]
        diagonal.append(float(v @ (x * v)))
        if n == count - 1:
            break
        rest = x * v
        for _ in range(2):
            rest = rest - every.T @ (every @ rest)
        size = float(np.sqrt(rest @ rest))
        if not size > 1e-8:
            break
        below.append(size)
        basis[n + 1] = rest / size
    jacobi = np.diag(diagonal) + np.diag(below[: len(diagonal) - 1], -1)
    points, vectors = np.linalg.eigh(jacobi)
    return np.clip(points, x.min(), x.max()), vectors[0] ** 2 * total

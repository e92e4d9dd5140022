from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]
_Terms: TypeAlias = tuple[float, float, float, float]
_Point: TypeAlias = tuple[int, float, float, float, float, _Terms, int]
_Root: TypeAlias = tuple[int, float, float, float, _Terms | tuple[()], int]

def check(status: int, where: str = "core") -> None: ...
def hyperbola_delta(m: _Vector, q: _Vector, k: _Vector, add: int, eps: float, log_tol: float) -> _Point: ...
def hyperbola_eps(m: _Vector, q: _Vector, k: _Vector, add: int, log_delta: float, log_tol: float) -> _Root: ...
def contour_delta(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    add: int,
    eps: float,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
    n_max: int = ...,
) -> _Point: ...
def contour_eps(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    add: int,
    log_delta: float,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
    n_max: int = ...,
) -> _Root: ...
def contour_work(b: int) -> int: ...
def chernoff_upper(
    m: _Vector, q: _Vector, k: _Vector, add: int, have_eps: int, value: float, work: _Vector
) -> tuple[int, float, float]: ...
def contour_curve(
    m: _Vector,
    q: _Vector,
    k: _Vector,
    add: int,
    eps: _Vector,
    rtol: float,
    T0: float,
    n_threads: int,
    work: _Vector,
) -> NDArray[np.float64]: ...
def normal_tails(x: _Vector) -> tuple[_Vector, _Vector]: ...
def pld_cells(
    s0: float,
    w: float,
    yb: _Vector,
    ya: _Vector,
    xb: _Vector,
    xa: _Vector,
    rel: _Vector,
    edge: float,
    absolute: float,
) -> tuple[_Vector, _Vector, _Vector, _Vector]: ...
def pld_upper(w: float, y_upper: _Vector, u_upper: _Vector, bottom: float) -> _Vector: ...
def pld_lower(w: float, y_lower: _Vector, u_lower: _Vector, top: float, t: float) -> _Vector: ...
def sampling_truncation(
    p: float, n: float, max_batch: float
) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float]]: ...
def sampling_tails(q: float, q_err: float, up: float, down: float, s: _Vector) -> tuple[_Vector, float]: ...
def two_transform(
    pair: NDArray[np.uint8], z: float, y: float, target: float = ...
) -> tuple[float, float, float, float, float, float, float, float]: ...

"""What ran, as an expression.

    EXPR := TERM + TERM ...            TERM := [COUNT *] STEP          STEP := MECH [@ RATE]
    MECH := NAME(number, name=number, ...)

An expression is parsed as Python and its tree walked over the few nodes above; nothing is evaluated. `STEPS` is the one
table of mechanisms. One `?` may stand for a count, a rate or the first argument of a mechanism: what `calibrate` looks
for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import hockeystick as hs

from ..bound import DomainError
from ..serial import KINDS, brief
from ..what.mechanism import K_MAX, Gaussian, Mechanism, Run, as_run, count, gaussian, poisson_subsampled

OVER: dict[str, tuple[Any, Any]] = {"sigma": (1e-2, 1e8), "q": (1e-12, 1.0), "steps": (1, K_MAX)}
"""Where a noise multiplier, a rate, a number of steps is looked for."""

LENGTH_MAX = 100_000
UNKNOWN = "unknown_"


class Sought(NamedTuple):
    """A RUN with a `?`: make(x) is the run, x a "sigma", "q" or number of "steps" within `over`."""

    name: str
    make: Callable[[Any], Run]
    solve: str
    over: tuple[Any, Any]


def _noisy(build: Callable[..., Mechanism]) -> Callable[..., Mechanism]:
    """`build` with the noise multiplier where it takes a Gaussian step."""

    def make(sigma, *rest, **named) -> Mechanism:
        return build(sigma if isinstance(sigma, Gaussian) else gaussian(sigma), *rest, **named)

    make.__signature__ = inspect.signature(build)  # type: ignore[attr-defined]
    return make


class Step(NamedTuple):
    """build(*arguments, **named) of a name in an expression; short names of parameters; where a `?` as the first is
    sought."""

    build: Callable[..., Mechanism | Run]
    short: dict[str, str] = {}  # noqa: RUF012 (never changed)
    over: tuple[float, float] = OVER["sigma"]


SIZES = {"n": "dataset_size", "batch": "max_batch", "max": "max_batch"}
LOSSES = (1e-6, 300.0)
STEPS = {
    **{name: Step(getattr(hs, name)) for name in KINDS if name in hs.__all__},
    "discrete_gaussian": Step(hs.discrete_gaussian, over=(0.05, 1e5)),
    "truncated": Step(_noisy(hs.truncated_poisson_subsampled), SIZES),
    "without_replacement": Step(_noisy(hs.without_replacement), {"n": "dataset_size", "batch": "max_batch"}),
    "cyclic": Step(_noisy(hs.cyclic_poisson), SIZES),
    "allocation": Step(_noisy(hs.random_allocation)),
    "balls_and_bins": Step(_noisy(hs.balls_and_bins)),
    "pure_dp": Step(hs.pure_dp, over=LOSSES),
    "approx_dp": Step(hs.approx_dp, over=LOSSES),
    "randomized_response": Step(hs.randomized_response, over=LOSSES),
    "k_ary_randomized_response": Step(hs.k_ary_randomized_response, over=LOSSES),
    "bounded_range": Step(hs.bounded_range, over=LOSSES),
    "exponential_mechanism": Step(hs.exponential_mechanism, over=LOSSES),
    "permute_and_flip": Step(hs.permute_and_flip, over=LOSSES),
    "top_k": Step(hs.top_k, over=LOSSES),
}
"""What may be written in an expression: every kind of step that has a public name, and these. One line adds another."""

LONG = {
    "poisson_subsampled": "@",
    "truncated_poisson_subsampled": "truncated",
    "cyclic_poisson": "cyclic",
    "random_allocation": "allocation",
}
"""Names in Python of what is written shorter, too."""

WHOLE = ("dataset_size", "max_batch", "iterations", "bands", "bins", "epochs", "k", "steps", "sensitivity")
"""Parameters that are integers where they are whole: 1e4 may be written for 10000."""


def mechanisms() -> str:
    """The mechanisms and what they take, for a help text."""
    whole = [f"{name}({_takes(step)})".replace(" ", "\0") for name, step in STEPS.items() if name not in LONG]
    return textwrap.indent(textwrap.fill(", ".join(whole), 114).replace("\0", " "), "  ")


def _takes(step: Step) -> str:
    """The parameters by the names that an expression knows, `name=` where the name has to be said, with the default."""
    short = {"mechanism": "sigma"} | {parameter: word for word, parameter in step.short.items()}
    words = []
    for name, parameter in inspect.signature(step.build).parameters.items():
        default = "" if parameter.default is parameter.empty else f"{parameter.default}"
        words.append(short.get(name, name) + (f"={default}" if parameter.kind is parameter.KEYWORD_ONLY else ""))
    return ", ".join(words)


def parse(text: str) -> Run:
    """The run of an expression without a `?`."""
    if "?" in text:
        raise DomainError(f"a ? is for `calibrate`, got {brief(text)}")
    return _walked(text, _tree(text), None)


def sought(text: str) -> Sought:
    """What an expression with one `?` leaves open."""
    if text.count("?") != 1:
        raise DomainError(f"RUN needs one ?, for what is sought, as in '1000*gaussian(?)@0.01'; got {brief(text)}")
    tree = _tree(text)
    solve, over = _place(tree)
    return Sought(text, lambda x: _walked(text, tree, x), solve, over)


def _walked(text: str, tree: ast.expr, x: Any) -> Run:
    try:
        return _Walk(text, x).run(tree)
    except RecursionError:
        raise DomainError(f"not an expression of runs (too deep): {brief(text)}") from None


def _tree(text: str) -> ast.expr:
    if len(text) > LENGTH_MAX:
        raise DomainError(f"an expression may have {LENGTH_MAX} characters, got {len(text)}; write the run to a file")
    try:
        return ast.parse(text.strip().replace("?", UNKNOWN), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise DomainError(
            f"not an expression of runs ({why}): {brief(text)}; as in '1000*gaussian(1.0)@0.01 + 5*laplace(2)'"
        ) from None


def _place(tree: ast.expr) -> tuple[str, tuple[Any, Any]]:
    """What the unknown stands for, and where it is looked for."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and (_unknown(node.left) or _unknown(node.right))
        ):
            return "steps", OVER["steps"]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and _unknown(node.right):
            return "q", OVER["q"]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.args and _unknown(node.args[0]):
                return "sigma", STEPS[node.func.id].over if node.func.id in STEPS else OVER["sigma"]
            if any(keyword.arg == "q" and _unknown(keyword.value) for keyword in node.keywords):
                return "q", OVER["q"]
    raise DomainError(
        "the ? may stand for a count, a rate, or the first argument of a mechanism: else the cost need not be monotone"
    )


def _unknown(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == UNKNOWN


class _Walk:
    """The tree of an expression as a run; `x` stands for the unknown."""

    def __init__(self, text: str, x: Any):
        self.text, self.x = text, x

    def run(self, node: ast.expr) -> Run:
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Add):
                return self.run(node.left) + self.run(node.right)
            if isinstance(node.op, ast.Mult):
                left, right = (node.left, node.right) if self._is_number(node.left) else (node.right, node.left)
                return self.run(right) * self.count(left)
            if isinstance(node.op, ast.MatMult):
                return self._sampled(node)
        if isinstance(node, ast.Call):
            return as_run(self._call(node))
        raise self._refuse(node, "expected COUNT*MECHANISM(...)@RATE, joined by +")

    def _sampled(self, node: ast.BinOp) -> Run:
        """MECH@RATE or COUNT*MECH@RATE, which Python reads as (COUNT*MECH)@RATE. What is in brackets would be several
        steps on one sample, which are no composition of sampled steps."""
        left: Any = node.left
        times = 1
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
            bracketed = (left.lineno, left.col_offset) != (node.lineno, node.col_offset)
            if bracketed or not self._is_number(left.left):
                raise self._refuse(node, "@RATE belongs to one step: COUNT*MECHANISM(...)@RATE")
            left, times = left.right, self.count(left.left)
        if not isinstance(left, ast.Call):
            raise self._refuse(node, "@RATE belongs to one step, sampled once: COUNT*MECHANISM(...)@RATE")
        step = self._call(left)
        if not isinstance(step, Mechanism):
            raise self._refuse(node, "a whole run cannot be sampled")
        return poisson_subsampled(step, self.number(node.right)) * times

    def _call(self, node: ast.Call) -> Mechanism | Run:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in STEPS:
            raise self._refuse(node, f"unknown mechanism; allowed: {', '.join(STEPS)}")
        step = STEPS[name]
        if any(keyword.arg is None for keyword in node.keywords):
            raise self._refuse(node, "** is not allowed")
        arguments = [self._argument(each) for each in node.args]
        named = {step.short.get(str(each.arg), str(each.arg)): self._argument(each.value) for each in node.keywords}
        try:
            given = inspect.signature(step.build).bind(*arguments, **named)
        except TypeError as error:
            raise self._refuse(node, f"{error}; {name}({_takes(step)})") from None
        for parameter in set(WHOLE) & set(given.arguments):
            given.arguments[parameter] = _as_whole(given.arguments[parameter])
        try:
            return step.build(*given.args, **given.kwargs)
        except DomainError as error:
            raise self._refuse(node, str(error)) from None

    def _argument(self, node: ast.expr) -> Any:
        if _unknown(node):
            return self.x
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self._argument(each) for each in node.elts)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult | ast.MatMult):
            return self.run(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | None):
            return node.value
        return self.number(node)

    def _is_number(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) or isinstance(node, ast.UnaryOp) or _unknown(node)

    def number(self, node: ast.expr) -> Any:
        if _unknown(node):
            return self.x
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.number(node.operand)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return node.value
        raise self._refuse(node, "expected a number")

    def count(self, node: ast.expr) -> int:
        value = self.number(node)
        return count("a count", _as_whole(value))

    def _refuse(self, node: ast.expr, why: str) -> DomainError:
        part = ast.get_source_segment(self.text.strip().replace("?", UNKNOWN), node) or self.text
        return DomainError(f"{brief(part.replace(UNKNOWN, '?'))}: {why}")


def _as_whole(value: Any) -> Any:
    """Whole floats as integers."""
    if isinstance(value, tuple):
        return tuple(map(_as_whole, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value

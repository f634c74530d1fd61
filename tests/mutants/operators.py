"""Mutations that mutmut does not make: a condition the other way round, a return or a call left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst


def negate(node: cst.If | cst.CompIf) -> Iterable[cst.CSTNode]:
    """Turn `if x` into `if not (x)`; mutmut takes a `not` away where one stands."""
    if not (isinstance(node.test, cst.UnaryOperation) and isinstance(node.test.operator, cst.Not)):
        test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield node.with_changes(test=cst.UnaryOperation(operator=cst.Not(), expression=test))


def invert(node: cst.ComparisonTarget) -> Iterable[cst.CSTNode]:
    """Turn `<` into `>=`; mutmut moves the boundary alone."""
    inverse = {
        cst.LessThan: cst.GreaterThanEqual,
        cst.LessThanEqual: cst.GreaterThan,
        cst.GreaterThan: cst.LessThanEqual,
        cst.GreaterThanEqual: cst.LessThan,
    }
    other = inverse.get(type(node.operator))
    if other:
        yield node.with_changes(operator=other())


def return_nothing(node: cst.Return) -> Iterable[cst.CSTNode]:
    """Turn `return x` into `return None`."""
    if node.value is not None and not isinstance(node.value, cst.Name | cst.Integer):
        yield node.with_changes(value=cst.Name("None"))


def leave_out(node: cst.Expr) -> Iterable[cst.CSTNode]:
    """Leave out a call that is made for what it does, or a value that is yielded."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


OPERATORS: list[tuple[type[cst.CSTNode], Callable[..., Iterable[cst.CSTNode]]]] = [
    (cst.If, negate),
    (cst.CompIf, negate),
    (cst.ComparisonTarget, invert),
    (cst.Return, return_nothing),
    (cst.Expr, leave_out),
]

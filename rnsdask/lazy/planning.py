"""One error for all that Dask's arrays lack as expressions, with ``array.query-planning`` on."""

from collections.abc import Callable
from functools import cache, wraps
from types import FunctionType
from typing import Any, TypeVar

import dask.array as da

from rnsdask.core.errors import QueryPlanningError

Function = TypeVar("Function", bound=Callable[..., Any])

PLANS_QUERIES = hasattr(da.Array, "expr")
"""Whether Dask's arrays are expressions in this process."""

elemwise: Callable[..., Any] = getattr(da, "elemwise", da.core.elemwise)
"""Dask's class for applying a function to the elements of arrays."""


def explain(function: Function) -> Function:
    """Wrap a function so that errors of missing parts of Dask's expressions become a QueryPlanningError."""
    if not (PLANS_QUERIES and isinstance(function, FunctionType)):
        return function
    wrapped: Function = _wrap(function)
    return wrapped


def explain_methods(kind: type) -> None:
    """Wrap all methods that a class defines, as :func:`explain` does."""
    if PLANS_QUERIES:
        for name, value in list(vars(kind).items()):
            if isinstance(value, FunctionType):
                setattr(kind, name, explain(value))


@cache
def _wrap(function: Callable[..., Any]) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except QueryPlanningError:
            raise
        except NotImplementedError as error:
            raise QueryPlanningError(str(error)) from error
        except AttributeError as error:
            if not isinstance(error.obj, da.Array):
                raise
            raise QueryPlanningError(str(error)) from error

    return call

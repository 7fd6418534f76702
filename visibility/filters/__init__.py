"""The filter language of lists and counts: upstream's, a WHERE clause over search attributes.

    text ── common.filters ──▶ syntax ── check ──▶ conditions ── store.filtering ──▶ Django Q ──▶ SQL with parameters

`syntax` is what was written, `conditions` is what it means: attributes known, values of their types. Each error is an
InvalidArgument in upstream's words that says where in the query it is.
"""

from visibility.filters.check import read_filter
from visibility.filters.conditions import Condition, Filter

__all__ = ["Condition", "Filter", "read_filter"]

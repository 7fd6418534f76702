"""The language of filters: the conditions of lists and counts, and of workflow rules.

    parse(query) -> syntax.Query     in `parser`; raises errors.QueryError

What names and values mean is its readers' matter: `visibility.filters` and `history.rules`.
"""

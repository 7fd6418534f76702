"""How a Text attribute and a filter on one are cut into words, alike on both databases.

Source: the tokenizer of upstream's SQLite store, FTS5's unicode61 with remove_diacritics 2: runs of letters and
digits, without case and accents.
"""

from __future__ import annotations

import re
import unicodedata

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_PRIVATE_USE = "Co"


def words(text: str) -> list[str]:
    """The words in order, in the form in which they are compared."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return "".join(map(_folded, text)).split()


def _folded(char: str) -> str:
    """The character as compared; a space where it ends a word, nothing where it only changes the one before."""
    category = unicodedata.category(char)
    if category == "Mn":
        return ""
    if category[0] not in "LN" and category != _PRIVATE_USE:
        return " "
    base = unicodedata.normalize("NFD", char)[0]
    lower = base.lower()
    return lower if len(lower) == 1 else base

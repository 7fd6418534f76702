"""Page sizes: the largest when none, or more, is asked for."""

from __future__ import annotations

from frontend.config import FrontendConfig


def history_page(wanted: int, *, config: FrontendConfig) -> int:
    return wanted if 0 < wanted <= config.history_page else config.history_page


def visibility_page(wanted: int, *, config: FrontendConfig) -> int:
    return wanted if 0 < wanted <= config.visibility_page else config.visibility_page

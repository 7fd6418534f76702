"""How far a processor is behind what was committed, to the second."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

STEP = timedelta(seconds=1)
"""Tasks committed within it count as of one time, so that what is kept grows with the lag, not with the tasks."""


class Lag:
    """Task ids grow in the order of commits, and tasks are done in that order."""

    def __init__(self) -> None:
        self._newest = 0
        self._undone: deque[tuple[datetime, int]] = deque()
        """A time of commit and the newest task of that second."""

    def committed(self, task_id: int, at: datetime) -> None:
        """Tasks up to this one are to be done. Those known already are left as they are: a table gives tasks again."""
        if task_id <= self._newest:
            return
        self._newest = task_id
        if self._undone and at - self._undone[-1][0] < STEP:
            self._undone[-1] = (self._undone[-1][0], task_id)
        else:
            self._undone.append((at, task_id))

    def done(self, task_id: int) -> None:
        """Tasks up to this one are done."""
        while self._undone and self._undone[0][1] <= task_id:
            self._undone.popleft()

    @property
    def oldest(self) -> datetime | None:
        """When the oldest task that is still to be done was committed; None when there is none."""
        return self._undone[0][0] if self._undone else None

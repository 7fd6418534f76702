"""The backend that `settings.DATABASES` names for PostgreSQL.

Django opens a connection for every thread that asks, so a burst of pages could take all that the server has. Here a thread
waits for its turn. A connection counts until it is closed or forgotten.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from django.db.utils import OperationalError

WAIT_S = 10.0
_slots: dict[str, threading.BoundedSemaphore] = {}
"""Of each alias, shared by the threads of this process."""


class DatabaseWrapper(base.DatabaseWrapper):
    _slot: weakref.finalize[..., Any] | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Raises OperationalError when no other thread lets a connection go for `WAIT_S`, or what connecting raises."""
        most: int = settings.DATABASE_WEB_CONNECTIONS
        slots = _slots.setdefault(self.alias, threading.BoundedSemaphore(most))
        if not slots.acquire(timeout=WAIT_S):
            raise OperationalError(f"all {most} connections to the database {self.alias} are in use")
        try:
            connection = super().get_new_connection(conn_params)
        except BaseException:
            slots.release()
            raise
        self._slot = weakref.finalize(connection, slots.release)
        self._slot.atexit = False
        return connection

    def _close(self) -> None:
        slot, self._slot = self._slot, None
        try:
            super()._close()  # type: ignore[misc]
        finally:
            if slot is not None:
                slot()

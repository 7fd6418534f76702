"""What somebody may do in the admin, as Django's permissions; the console keeps nothing of its own."""

from __future__ import annotations

from django.db import models

PERMISSIONS = {
    "signal_execution": "Can signal executions",
    "cancel_execution": "Can ask executions to cancel themselves",
    "terminate_execution": "Can terminate executions",
    "reset_execution": "Can reset executions",
    "pause_execution": "Can pause and unpause executions",
    "retry_activity": "Can have activities tried again at once",
    "delete_execution": "Can delete executions",
    "unload_queue": "Can unload task queues",
    "run_batch": "Can start and stop batches of what they may do one by one",
}


class Action(models.Model):
    """No table: its permissions are those of the console's actions."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = tuple(PERMISSIONS.items())

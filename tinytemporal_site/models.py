"""What the cluster as a whole keeps: who is in it. Written through `common.membership.store`."""

from django.db import models

from common.fields import KeyField


class ClusterMember(models.Model):
    """A process in one of its roles, and when it was last heard of. `member` is "role/host"."""

    member = KeyField(primary_key=True)
    role = models.TextField()
    host = models.TextField()
    address = models.TextField()
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()

    class Meta:
        db_table = "cluster_members"

    def __str__(self) -> str:
        return self.member

"""This part's pages. They come before those that they act on: an execution's page takes whatever follows it."""

from __future__ import annotations

from tinytemporal_site.console.actions import batches, views
from tinytemporal_site.console.routes import Route

VIEW = "worker.view_batchoperation"
RUN = "console.run_batch"

ROUTES: list[Route] = [
    # Its permission is the action's.
    Route("executions/<str:run_id>/do/<str:action>/", views.act, name="act"),
    Route("queues/<path:physical_queue>/unload/", views.unload, name="unload", permission="console.unload_queue"),
    Route("batches/", batches.batches, name="batches", permission=VIEW),
    Route("batches/new/", batches.new, name="batch_new", permission=RUN),
    Route("batches/<str:namespace>/<str:job_id>/", batches.batch, name="batch", permission=VIEW),
    Route("batches/<str:namespace>/<str:job_id>/stop/", batches.stop, name="batch_stop", permission=RUN),
]

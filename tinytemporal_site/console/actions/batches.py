"""The pages of batches: the list, one with its progress, a new one, and its end before its time."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest, StopBatchOperationRequest

from common.codec import dec_hook
from common.contracts.batches import BatchRecord
from common.keyed_admin import key_of
from history.models import Execution
from tinytemporal_site.console import look
from tinytemporal_site.console.actions import doing
from tinytemporal_site.console.actions.bulk import BULK, Bulk
from tinytemporal_site.console.actions.doing import Target
from tinytemporal_site.console.actions.forms import RequiredReasonForm
from worker.models import BatchOperation

PAGE = 50
MOST_RUNS = 200
"""That a batch may be started for by naming them; more are found by a query."""
_asked_and_done = require_http_methods(["GET", "HEAD", "POST"])

OPERATIONS = {
    "termination_operation": "Terminate",
    "signal_operation": "Signal",
    "cancellation_operation": "Cancel",
    "deletion_operation": "Delete",
    "reset_operation": "Reset",
    "update_workflow_options_operation": "Update options",
    "unpause_activities_operation": "Unpause activities",
    "reset_activities_operation": "Retry activities now",
    "update_activity_options_operation": "Update activities' options",
}


@require_GET
def batches(request: HttpRequest) -> HttpResponse:
    """Of one namespace, the newest first."""
    namespace = request.GET.get("namespace", "default")
    found = BatchOperation.objects.filter(namespace=namespace).order_by("-started_at", "-job_id")
    after = request.GET.get("after", "")
    if after:
        last = BatchOperation.objects.filter(namespace=namespace, job_id=after).first()
        found = found.filter(_follows(last)) if last else found.none()
    rows = list(found[: PAGE + 1])
    following = rows[PAGE - 1].job_id if len(rows) > PAGE else ""
    return look.page(
        request,
        "console/actions/batches.html",
        title="Batches",
        namespace=namespace,
        lines=[(row, _address(row.namespace, row.job_id), shown(row)) for row in rows[:PAGE]],
        following=f"?{urlencode({'namespace': namespace, 'after': following})}" if following else "",
        after=after,
    )


def _follows(last: BatchOperation) -> Q:
    """What comes after it in the list; the first part bounds the index's range."""
    is_older = Q(started_at__lt=last.started_at) | Q(started_at=last.started_at, job_id__lt=last.job_id)
    return Q(started_at__lte=last.started_at) & is_older


@require_GET
def batch(request: HttpRequest, namespace: str, job_id: str) -> HttpResponse:
    """How far it has come; `part=progress` is what the page asks for again."""
    row = _row(namespace, job_id)
    template = "progress.html" if request.GET.get("part") == "progress" else "batch.html"
    return look.page(
        request,
        f"console/actions/{template}",
        title=f"Batch {row.job_id}",
        row=row,
        batch=shown(row),
        operation=OPERATIONS.get(row.operation, row.operation),
        address=_address(row.namespace, row.job_id),
        may_stop=row.closed_at is None and request.user.has_perm("console.run_batch"),
        stop_address=reverse("admin:console_batch_stop", args=[quote(row.namespace), quote(row.job_id)]),
    )


@_asked_and_done
def new(request: HttpRequest) -> HttpResponse:
    """What is to be done to which runs: `run`, their ids, or `query`, what finds them in `namespace`."""
    given = request.POST if request.method == "POST" else request.GET
    bulk = BULK.get(given.get("operation", ""))
    if bulk is None:
        raise Http404("There is no such operation.")
    if not request.user.has_perm(bulk.permission):
        raise PermissionDenied
    runs, query = _runs(given.getlist("run")), given.get("query", "").strip()
    namespace = runs[0].namespace if runs else given.get("namespace", "default")
    form = bulk.form(request.POST if request.method == "POST" else None)
    problem, status = _problem_of(runs, given.getlist("run"), query), 200
    if not problem and form.is_bound and form.is_valid():
        made = _request(bulk, form.cleaned_data, doing.identity(request), namespace=namespace, runs=runs, query=query)
        outcome = _start(request, bulk, made)
        if not outcome.problem:
            return HttpResponseRedirect(_address(namespace, made.job_id))
        problem, status = outcome.problem, outcome.status
    return look.page(
        request,
        "console/actions/new_batch.html",
        status=status,
        title=f"{bulk.title} many executions",
        bulk=bulk,
        runs=runs,
        query=query,
        namespace=namespace,
        form=form,
        problem=problem,
        back=f"{reverse('admin:console_executions')}?{urlencode({'namespace': namespace})}",
    )


@_asked_and_done
def stop(request: HttpRequest, namespace: str, job_id: str) -> HttpResponse:
    row = _row(namespace, job_id)
    form = RequiredReasonForm(request.POST if request.method == "POST" else None)
    back = _address(row.namespace, row.job_id)
    problem, status = "", 200
    if form.is_bound and form.is_valid():
        asked = StopBatchOperationRequest(
            namespace=row.namespace,
            job_id=row.job_id,
            reason=form.cleaned_data["reason"],
            identity=doing.identity(request),
        )
        outcome = doing.do(
            request,
            target=_target(row.namespace, row.job_id),
            action="Stop",
            reason=asked.reason,
            call=doing.api("StopBatchOperation", asked),
        )
        if not outcome.problem:
            messages.success(request, "The batch was stopped: what is done stays done.")
            return HttpResponseRedirect(back)
        problem, status = outcome.problem, outcome.status
    return look.page(
        request,
        "console/actions/stop_batch.html",
        status=status,
        title=f"Stop batch {row.job_id}",
        row=row,
        form=form,
        problem=problem,
        back=back,
    )


def shown(row: BatchOperation) -> BatchRecord | None:
    """The record; None when it can't be read."""
    try:
        return msgspec.convert(row.data, BatchRecord, dec_hook=dec_hook)
    except (msgspec.ValidationError, ValueError):
        return None


def _start(request: HttpRequest, bulk: Bulk, made: StartBatchOperationRequest) -> doing.Outcome:
    return doing.do(
        request,
        target=_target(made.namespace, made.job_id),
        action=f"Batch: {bulk.title}",
        reason=made.reason,
        call=doing.api("StartBatchOperation", made),
    )


def _request(
    bulk: Bulk, given: dict[str, Any], identity: str, *, namespace: str, runs: list[Execution], query: str
) -> StartBatchOperationRequest:
    made = StartBatchOperationRequest(
        namespace=namespace,
        # Drawn with the page: sent twice, it is one batch.
        job_id=str(given["request_id"]) or str(uuid.uuid4()),
        reason=given["reason"],
        visibility_query="" if runs else query,
        executions=[WorkflowExecution(workflow_id=run.workflow_id, run_id=run.run_id) for run in runs],
    )
    bulk.fill(made, given, identity)
    return made


def _runs(ids: list[str]) -> list[Execution]:
    """Those that there are, of the first one's namespace."""
    found = list(Execution.objects.filter(run_id__in=ids[: MOST_RUNS + 1])) if ids else []
    return [run for run in found if run.namespace == found[0].namespace]


def _problem_of(runs: list[Execution], ids: list[str], query: str) -> str:
    if len(ids) > MOST_RUNS:
        return f"At most {MOST_RUNS} executions can be named; a filter finds any number."
    if ids and len(runs) < len(set(ids)):
        return f"Only {len(runs)} of the {len(set(ids))} chosen executions are there, and of one namespace."
    if not runs and not query:
        return "Nothing is chosen: mark executions in the list, or ask for a filter."
    return ""


def _row(namespace: str, job_id: str) -> BatchOperation:
    row = BatchOperation.objects.filter(namespace=unquote(namespace), job_id=unquote(job_id)).first()
    if row is None:
        raise Http404("There is no such batch: it never was, or retention has deleted it.")
    return row


def _target(namespace: str, job_id: str) -> Target:
    return Target(model=BatchOperation, key=key_of(namespace, job_id), shown=f"{namespace}/{job_id}")


def _address(namespace: str, job_id: str) -> str:
    return reverse("admin:console_batch", args=[quote(namespace), quote(job_id)])

"""The pages of actions: asked on a page of their own, done by POST, refused to whom lacks the permission."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from history.models import ExecutionView
from matching.models import TaskQueue
from tinytemporal_site.console import live, look
from tinytemporal_site.console.actions import doing
from tinytemporal_site.console.actions.catalog import ACTIONS, Action
from tinytemporal_site.console.actions.doing import Target
from tinytemporal_site.console.actions.forms import DeleteForm
from tinytemporal_site.console.executions import rows
from tinytemporal_site.console.executions.rows import Run

_asked_and_done = require_http_methods(["GET", "HEAD", "POST"])


@_asked_and_done
def act(request: HttpRequest, run_id: str, action: str) -> HttpResponse:
    """An action on an execution."""
    chosen = ACTIONS.get(action)
    if chosen is None:
        raise Http404("There is no such action.")
    require(request, chosen.permission)
    run = rows.find(unquote(run_id))
    if run is None:
        raise Http404("There is no such run: it never was, or retention or somebody has deleted it.")
    form = chosen.form(request.POST if request.method == "POST" else None, run=run)
    problem, status = "", 200
    if form.is_bound and form.is_valid():
        outcome = _act(request, chosen, run, form.cleaned_data)
        if not outcome.problem:
            messages.success(request, f"{run.row.workflow_id}: {chosen.done}")
            return HttpResponseRedirect(_after(chosen, run))
        problem, status = outcome.problem, outcome.status
    return look.page(
        request,
        "console/actions/act.html",
        status=status,
        title=f"{chosen.title}: {run.row.workflow_id}",
        action=chosen,
        run=run.row,
        form=form,
        problem=problem,
        back=_page_of(run),
    )


def _act(request: HttpRequest, action: Action, run: Run, given: dict[str, object]) -> doing.Outcome:
    return doing.do(
        request,
        target=Target(model=ExecutionView, key=run.row.run_id, shown=run.row.workflow_id),
        action=action.title,
        reason=str(given.get("reason") or given.get("signal_name") or given.get("activity_id") or ""),
        call=doing.api(action.method, action.request(run.row, given, doing.identity(request))),
    )


@_asked_and_done
def unload(request: HttpRequest, physical_queue: str) -> HttpResponse:
    """A task queue is saved and unloaded by its owner; whoever uses it next loads it again."""
    name = unquote(physical_queue)
    queue = TaskQueue.objects.filter(physical_queue=name).first()
    if queue is None:
        raise Http404(f"There is no task queue {name}.")
    form = DeleteForm(request.POST if request.method == "POST" else None)
    back = reverse("admin:console_queue", args=[quote(name)])
    problem, status = "", 200
    if form.is_bound and form.is_valid():
        outcome = doing.do(
            request,
            target=Target(model=TaskQueue, key=name, shown=name),
            action="Unload",
            reason=form.cleaned_data["reason"],
            call=lambda: live.call(lambda s: _unload(s, queue), timeout=doing.WITHIN_S),
        )
        if not outcome.problem:
            messages.success(request, "It was unloaded." if outcome.answer else "It was not loaded.")
            return HttpResponseRedirect(back)
        problem, status = outcome.problem, outcome.status
    return look.page(
        request,
        "console/actions/unload.html",
        status=status,
        title=f"Unload: {name}",
        queue=queue,
        form=form,
        problem=problem,
        back=back,
    )


async def _unload(services: live.Services, queue: TaskQueue) -> bool:
    normal_name = queue.data.get("normalName", "") if isinstance(queue.data, dict) else ""
    return await services.matching.unload_task_queue(physical_queue=queue.physical_queue, normal_name=normal_name)


def require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied


def _page_of(run: Run) -> str:
    return reverse("admin:console_execution", args=[quote(run.row.run_id)])


def _after(action: Action, run: Run) -> str:
    if action.name == "delete":
        return reverse("admin:console_executions")
    return _page_of(run)

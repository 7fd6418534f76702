"""The pages of executions. Whatever they show may be read by who may view executions; asking a worker is a POST."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.admin.utils import quote, unquote
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from common.archetypes import business_id
from tinytemporal_site.console import look
from tinytemporal_site.console.executions import asking, download, following, rows
from tinytemporal_site.console.executions.assembling import context_of
from tinytemporal_site.console.executions.listing import list_page, namespace_names
from tinytemporal_site.console.executions.rows import Run
from tinytemporal_site.console.executions.search import RUN_ID, STATUSES, Form

_FOLDER = "console/executions"


@require_GET
def executions(request: HttpRequest) -> HttpResponse:
    form = Form.of(request.GET.dict())
    if RUN_ID.fullmatch(form.id) and rows.find(form.id) is not None:
        return HttpResponseRedirect(reverse("admin:console_execution", args=[quote(form.id)]))
    page = list_page(form)
    following_address = f"?{urlencode(form.sent(after=page.following))}" if page.following else ""
    return look.page(
        request,
        f"{_FOLDER}/list.html",
        title="Executions",
        form=form,
        page=page,
        statuses=STATUSES,
        namespaces=namespace_names(),
        following=following_address,
        first=f"?{urlencode(form.sent(after=''))}" if form.after else "",
    )


@require_GET
def execution(request: HttpRequest, run_id: str) -> HttpResponse:
    run = _run(run_id)
    is_part = request.GET.get("part") == "moving"
    template = "moving.html" if is_part else "detail.html"
    return look.page(
        request,
        f"{_FOLDER}/{template}",
        title=business_id(run.row.workflow_id),
        **_links(request, run),
        **context_of(run, asked_from=request.GET.get("from", "")),
    )


def _links(request: HttpRequest, run: Run) -> dict[str, Any]:
    key = quote(run.row.run_id)
    address = reverse("admin:console_execution", args=[key])
    asked = request.GET.get("from", "")
    return {
        "address": address,
        "part_address": f"{address}?{urlencode({'part': 'moving'} | ({'from': asked} if asked else {}))}",
        "live_address": reverse("admin:console_execution_live", args=[key]),
        "query_address": reverse("admin:console_execution_query", args=[key]),
        "download_address": reverse("admin:console_execution_history", args=[key]),
        "stack_trace": asking.STACK_TRACE,
    }


@require_GET
def history(request: HttpRequest, run_id: str) -> HttpResponseBase:
    return download.response(request, _run(run_id))


@require_GET
def live(request: HttpRequest, run_id: str) -> HttpResponseBase:
    return following.response(request, _run(run_id))


@require_POST
def query(request: HttpRequest, run_id: str) -> HttpResponse:
    run = _run(run_id)
    name, text = request.POST.get("name", "").strip(), request.POST.get("arguments", "")
    return look.page(
        request,
        f"{_FOLDER}/query.html",
        title="Query",
        run=run.row,
        name=name,
        arguments=text,
        answer=_answer(run, name=name, text=text),
        **_links(request, run),
    )


def _answer(run: Run, *, name: str, text: str) -> asking.Answer:
    if not name:
        return asking.Answer(results=[], problem="Which query? Its name is missing.")
    try:
        arguments: list[Any] = asking.arguments_of(text)
    except ValueError as error:
        return asking.Answer(results=[], problem=f"The arguments are no JSON: {error}")
    return asking.ask(run.row, name=name, arguments=arguments, codec_endpoint=settings.CODEC_ENDPOINT)


def _run(run_id: str) -> Run:
    run = rows.find(unquote(run_id))
    if run is None:
        raise Http404("There is no such run: it never was, or retention or somebody has deleted it.")
    return run

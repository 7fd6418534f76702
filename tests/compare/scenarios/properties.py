"""Markers, search attributes, memo."""

from __future__ import annotations

from tests.behaviours.harness import application_failure, command, payloads, seconds, timer
from tests.compare.scenario import scenario
from tests.compare.world import World


@scenario
async def markers(w: World) -> None:
    await w.idle(
        "main",
        command("record_marker", marker_name="Version", details={"change": payloads("id"), "version": payloads(2)}),
        command("record_marker", marker_name="core_local_activity", failure=application_failure("local")),
        command("record_marker", marker_name="Header", header={"fields": {"h": payloads(1).payloads[0]}}),
    )


@scenario
async def search_attributes_upserted(w: World) -> None:
    upsert = "upsert_workflow_search_attributes"

    def fields(**values: object) -> dict[str, object]:
        return {
            "search_attributes": {
                "indexed_fields": {name: payloads(value).payloads[0] for name, value in values.items()}
            }
        }

    run = await w.idle("main", command(upsert, **fields(CompareKeyword="one", CompareInt=1)))
    await w.described("upserted", run)
    await w.tell(run, command(upsert, **fields(CompareKeyword="two", CompareBool=True, CompareText="some words")))
    await w.described("changed", run)
    await w.tell(run, command(upsert, **fields(CompareKeyword=None, CompareInt=[1])))
    await w.described("one removed", run)
    await w.tell(run, command(upsert, **fields(CompareDatetime="2020-01-02T03:04:05Z", CompareInt=[])))
    typed = payloads("three").payloads[0]
    typed.metadata["type"] = b"Keyword"
    typed.metadata["extra"] = b"kept"
    await w.tell(run, command(upsert, search_attributes={"indexed_fields": {"CompareKeyword": typed}}))
    await w.tell(run, command("complete_workflow_execution"))


@scenario
async def search_attributes_of_versions(w: World) -> None:
    names = payloads(["change-1", "change-2"]).payloads[0]
    names.metadata["type"] = b"KeywordList"
    await w.idle("main", command(
        "upsert_workflow_search_attributes", search_attributes={"indexed_fields": {"TemporalChangeVersion": names}},
    ))  # fmt: skip


@scenario
async def memo_modified(w: World) -> None:
    modify = "modify_workflow_properties"
    run = await w.idle(
        "main",
        command(modify, upserted_memo={"fields": {"a": payloads("new").payloads[0], "b": payloads("b").payloads[0]}}),
        memo={"fields": {"a": payloads("old").payloads[0], "c": payloads("c").payloads[0]}},
    )
    await w.described("changed", run)
    await w.tell(run, command(modify, upserted_memo={"fields": {"a": payloads(None).payloads[0], "c": {}}}))
    await w.described("removed", run)
    null = {"metadata": {"encoding": b"binary/null"}}
    await w.tell(run, command(modify, upserted_memo={"fields": {"b": null}}), timer(seconds(1000)))
    await w.described("null", run)

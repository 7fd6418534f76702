"""The search attributes that name the builds of a run's workers."""

from __future__ import annotations

import json

import pytest
from temporalio.api.common.v1 import WorkerVersionStamp

from history.build_ids import SIZE_LIMIT, with_build_id
from tests.history.worker_host import WorkerHost


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def test_a_completion_names_its_workers_build(host: WorkerHost) -> None:
    host.turn(worker_version_stamp={"build_id": "b1"}, binary_checksum="c1", force_create_new_workflow_task=True)
    shown = host.visibility[host.info.run_id].search_attributes
    assert shown["BuildIds"].data == b'["unversioned","unversioned:b1"]'
    assert shown["BuildIds"].metadata["type"] == b"KeywordList"
    assert shown["BinaryChecksums"].data == b'["c1"]'
    before = host.info.search_attributes
    host.turn(worker_version_stamp={"build_id": "b1"}, binary_checksum="c1", force_create_new_workflow_task=True)
    assert host.info.search_attributes is before
    host.turn(worker_version_stamp={"build_id": "b2"}, binary_checksum="c2")
    assert host.info.search_attributes["BuildIds"].data == b'["unversioned","unversioned:b1","unversioned:b2"]'
    assert host.info.search_attributes["BinaryChecksums"].data == b'["c1","c2"]'


def test_a_worker_that_names_no_build_is_unversioned(host: WorkerHost) -> None:
    host.turn()
    assert host.info.search_attributes["BuildIds"].data == b'["unversioned"]'


def test_the_oldest_builds_go_when_there_are_too_many() -> None:
    attributes: dict = {}  # type: ignore[type-arg]
    for number in range(200):
        attributes = with_build_id(attributes, WorkerVersionStamp(build_id=f"build-{number}"))
    values = json.loads(attributes["BuildIds"].data)
    assert len(attributes["BuildIds"].data) <= SIZE_LIMIT
    assert values[0] == "unversioned"
    assert values[-1] == "unversioned:build-199"
    assert "unversioned:build-0" not in values

"""Workflow ids go the same way as at the official server."""

import pytest

from common.farmhash import fingerprint32

# Which of these ids the official server, 1.32.0, sent to a version that was ramped up to 50 %.
RAMPED = [
    "a",
    "wf-0123456789ab",
    "é-wörk",
    "xxxxxxxxxxxxxxxxxxxxx",
    "order-17",
    "order-19-of-somebody",
    "zzzzzzzzzzzzzzzzzzzzzzzz",
    "vvvvvvvvvvvvv",
    "uuuuuuuuuuuuuuuuuuuuuuuuu",
    "ttttttttttttttttttttttttttttttttttttttttttttt",
    "id-9-kkkkkkkkk",
    "id-12-kkkkkkkkkkkk",
    "id-15-kkkkkkkkkkkkkkk",
    "id-18-kkkkkkkkkkkkkkkkkk",
]
NOT_RAMPED = [
    "abcd",
    "abcdefgh",
    "a-rather-long-workflow-id-of-40-characters!",
    "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
    "order-18",
    "wwwwwwwwwwww",
    "id-0-",
    "id-3-kkk",
    "id-6-kkkkkk",
]


@pytest.mark.parametrize("workflow_id", RAMPED)
def test_ids_that_are_ramped(workflow_id: str) -> None:
    assert fingerprint32(workflow_id.encode()) * 100 / 2**32 <= 50


@pytest.mark.parametrize("workflow_id", NOT_RAMPED)
def test_ids_that_are_not(workflow_id: str) -> None:
    assert fingerprint32(workflow_id.encode()) * 100 / 2**32 > 50

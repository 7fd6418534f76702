"""Ids of workflows and of runs go the same way as at the official server."""

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
# What go-farm's Fingerprint32 makes of an id, by which upstream's ramps go.
FINGERPRINTS = [
    ("", 3_696_677_242),
    ("a", 1_016_544_589),
    ("ab", 1_098_068_221),
    ("abcd", 2_562_006_677),
    ("abcde", 2_750_637_740),
    ("é-wörk", 875_261_166),
    ("exactly-12-b", 2_707_961_224),
    ("order-17-long", 3_917_424_231),
    ("exactly-twenty-four-byte", 2_968_415_772),
    ("0193a7c4-5a3e-7c11-8b52-0d7f1e2a9c44", 1_188_072_064),
    ("019400f0-0000-7000-8000-000000000000", 2_985_620_734),
    ("5f0c3b0e-9a51-4a8e-b0ab-3c5f4e6d7a89", 914_467_093),
    ("a-rather-long-workflow-id-of-43-characters!", 685_311_645),
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


@pytest.mark.parametrize("text, expected", FINGERPRINTS)
def test_fingerprints(text: str, expected: int) -> None:
    assert fingerprint32(text.encode()) == expected

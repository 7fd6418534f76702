"""Executions that are not workflows: activities, and operations, of their own.

Each such kind is an archetype (upstream's word). An execution of it lives in History as a workflow's run does, in the same
tables, under a key that no workflow id can be:

    key_of(ACTIVITY, "charge-7")     what History, Matching and task tokens have where a workflow's is its workflow id
    archetype_of(key), business_id(key)     its parts again

So an activity and a workflow may both be called "charge-7", and a workflow's own way through the server is what it was. The
key begins with U+FDD0, which Unicode keeps for the inside of programs: clients' ids that begin with it are refused.
"""

from __future__ import annotations

from typing import Literal

Archetype = Literal["", "activity", "nexusOperation"]
"""Empty: a workflow."""

ACTIVITY: Archetype = "activity"
NEXUS_OPERATION: Archetype = "nexusOperation"

MARK = "\ufdd0"

NAMES: dict[Archetype, str] = {ACTIVITY: "activity", NEXUS_OPERATION: "operation"}
"""As upstream's messages call an execution of it."""

DIVISIONS: dict[Archetype, str] = {ACTIVITY: "3332429922", NEXUS_OPERATION: "131748067"}
"""The value of TemporalNamespaceDivision by which lists tell executions of the archetype from others: upstream's number for it."""


def key_of(archetype: Archetype, business_id: str) -> str:
    return f"{MARK}{archetype}{MARK}{business_id}"


def archetype_of(key: str) -> Archetype:
    """Empty for a workflow id."""
    if not key.startswith(MARK):
        return ""
    name = key[1:].partition(MARK)[0]
    return next((archetype for archetype in NAMES if archetype == name), "")


def business_id(key: str) -> str:
    """What its client calls the execution; a workflow id as it is."""
    return key[1:].partition(MARK)[2] if archetype_of(key) else key

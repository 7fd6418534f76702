"""Payloads that the server itself writes into events, encoded as every SDK's default converter reads them."""

from __future__ import annotations

import json

from temporalio.api.common.v1 import Payload, Payloads


def encode_string(text: str) -> Payloads:
    """One `json/plain` payload that holds a string."""
    data = json.dumps(text, ensure_ascii=False).encode()
    return Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=data)])

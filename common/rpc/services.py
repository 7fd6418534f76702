"""The contracts between the roles, as services."""

from __future__ import annotations

from common.contracts.history import HistoryClient
from common.contracts.inspect import HistoryInspector, MatchingInspector
from common.contracts.matching import MatchingClient
from common.rpc.contract import Contract

HISTORY = Contract(HistoryClient, service="tinytemporal.History")
MATCHING = Contract(MatchingClient, service="tinytemporal.Matching")
# Of one host, whatever it owns.
HISTORY_INSPECT = Contract(HistoryInspector, service="tinytemporal.HistoryInspector")
MATCHING_INSPECT = Contract(MatchingInspector, service="tinytemporal.MatchingInspector")

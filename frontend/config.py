"""The frontend's limits and what it says about itself, upstream's defaults unless said otherwise. Built from settings
by the composition root."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from common.callback_addresses import CallbackAddress

SERVER_VERSION = "1.32.0"
"""The upstream version whose API this is: SDKs and the UI compare it as a semantic version."""


class FrontendConfig(Struct, kw_only=True, frozen=True):
    # what it says about itself
    server_version: str = SERVER_VERSION
    cluster_name: str = "active"
    cluster_id: str = ""
    """Empty: derived from the id of the `default` namespace, so the same for every process of the cluster."""
    history_shards: int = 4
    persistence_store: str = ""
    """The database in use, such as "sqlite" or "postgresql"."""
    public_address: str = ""
    """Where other hosts reach this frontend, for ListClusters; empty: the address it listens on."""
    public_http_address: str = ""
    """The same of its HTTP port."""
    capabilities: tuple[str, ...] = (
        "eager_workflow_start",
        "sync_update",
        "async_update",
        "worker_heartbeats",
        "reported_problems_search_attribute",
        "worker_poll_complete_on_shutdown",
        "workflow_pause",
        "poller_autoscaling",
        "workflow_update_callbacks",
        "standalone_activities",
        "standalone_nexus_operation",
        "standalone_activity_start_delay",
        "standalone_activity_operator_commands",
        "standalone_activity_batch_operations",
    )
    """Names of the fields of NamespaceInfo.Capabilities that are true."""
    workflow_pause: bool = True
    workflow_rules: bool = False
    """Whether rules can be made, shown and deleted; those that there are pause activities either way."""
    build_id_versioning: bool = True
    """The deprecated versioning of workers by build id: its workers, version sets and rules. Source: upstream's
    `frontend.workerVersioningWorkflowAPIs`, `…DataAPIs` and `…RuleAPIs`, all off there by default."""
    reachability_builds: int = 5
    """Builds that one call asks for."""
    reachability_queues: int = 20
    """Task queues looked into for each of them; of the others nothing is said."""
    reachable_after_default: timedelta = timedelta(minutes=5)
    """How long new workflows are taken to reach a build that is no longer the default."""
    reachable_after_redirect: timedelta = timedelta(minutes=3)
    """How long a deleted redirect rule is still taken into account, since lists may lag."""

    # limits; sizes are bytes
    id_limit: int = 1_000
    build_id_limit: int = 255
    blob_limit: int = 2 * 1024 * 1024
    memo_limit: int = 2 * 1024 * 1024
    truncated_failure: int = 512 * 1024
    """To what a failure over `blob_limit` is cut as the cause of the one that takes its place."""
    task_completion_limit: int = 40 * 1024 * 1024
    """Only told to clients (NamespaceInfo.Limits)."""
    request_limit: int = 4 * 1024 * 1024
    """A larger message is refused with the text by which SDKs know that it was too large."""
    hard_request_limit: int = 64 * 1024 * 1024
    """Beyond this the transport itself refuses."""
    error_message_limit: int = 4_000
    links_per_request: int = 10
    link_limit: int = 4_000
    callbacks_per_execution: int = 2_000
    callback_url_limit: int = 1_000
    callback_header_limit: int = 8 * 1024
    callback_addresses: tuple[CallbackAddress, ...] = ()
    """Where completion callbacks may go; nowhere by default."""
    fairness_key_limit: int = 64
    summary_limit: int = 400
    """Of user metadata, as is the next."""
    details_limit: int = 20_000
    workflow_rules_limit: int = 10
    """Of a namespace."""
    concurrent_batches: int = 1
    """Batches that may run in a namespace at the same time."""
    operation_token_limit: int = 4_096
    endpoint_name_limit: int = 200
    endpoint_url_limit: int = 4 * 1024
    endpoint_description_limit: int = 20_000
    endpoint_page: int = 100
    endpoint_page_limit: int = 1_000
    history_page: int = 256
    visibility_page: int = 1_000
    min_retention: timedelta = timedelta(hours=1)

    # time
    default_task_timeout: timedelta = timedelta(seconds=10)
    max_task_timeout: timedelta = timedelta(seconds=120)
    min_long_poll: timedelta = timedelta(seconds=2)
    """A poll whose caller waits less is refused."""
    poll_margin: timedelta = timedelta(seconds=1)
    """A poll is answered this long before its caller stops waiting."""
    ownership_retries: int = 6
    ownership_backoff: timedelta = timedelta(milliseconds=50)
    """First wait when a shard or a queue has changed its owner; doubles."""
    unavailable_retries: int = 1
    unavailable_backoff: timedelta = timedelta(milliseconds=200)
    http_body_timeout: timedelta = timedelta(minutes=1)
    """How long the body of an HTTP request may take to come."""
    http_requests: int = 4_000
    """Connections and requests of the HTTP port at the same time; those beyond are refused."""
    stop_grace: timedelta = timedelta(seconds=5)
    """How long calls in flight may take once the server stops; polls end at once."""
    keepalive_time: timedelta = timedelta(minutes=1)
    keepalive_timeout: timedelta = timedelta(seconds=10)
    keepalive_min_interval: timedelta = timedelta(seconds=10)

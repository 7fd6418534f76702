"""Worker deployments: which versions of a worker there are, and which of them gets what.

    frontend ── MatchingClient ──▶ `service` ── `changes`, `routing_changes` (pure) ──▶ `store`: worker_deployments
    a poll of a version ────────▶ `service.register`     │
                                                         └─ `sync` ──▶ task_queue_user_data of every queue concerned

A deployment is one row, guarded by its own version: any host may change it. What a queue must know to route is copied into its
user data; a row says until which of its versions that is done, and a change that crashed between is taken up by the worker
role's loop (`worker.drainage`), which also finds out which versions are drained.
"""

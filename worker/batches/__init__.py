"""Batches: an operation on many executions, durable, resumable, paced.

    frontend, admin ── BatchClient (`store`) ──▶ batch_operations ◀── `loop` ── `runner` ── `operations` ──▶ History

The loop finds what runs and gives each batch to a runner. A runner takes a batch by raising its generation, and every write
of its progress checks that generation: of two hosts that think a batch theirs, the later one goes on and the earlier one
finds out at its next write. A page of executions is worked off by a few tasks at a pace; what a restart interrupts is done
again from the beginning of its page, with the same request ids, so that History takes nothing twice.
"""

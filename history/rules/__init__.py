"""Workflow rules: which activities of which runs are paused before they start.

    conditions.py   a rule's two conditions, from text to a function
    fields.py       what they may ask of a run and of an activity

A rule is a message of the namespace's record (`NamespaceRecord.workflow_rules`); `history.transitions.rules` applies it.
Source: upstream's service/history/workflow/{activity.go,matcher}.
"""

"""What people do in the admin to executions and queues, one by one and in batches.

    catalog.py       every action on an execution: who may, what is asked of them, which API call it is
    bulk.py          those that a batch can do
    forms.py         what is asked
    audit.py         Django's admin log, written before the call and completed with its outcome
    doing.py         one call: permission checked, audited, every refusal in words
    views.py         the pages: an action is confirmed on a page of its own and made by POST
    batches.py       the pages of batches

An action is the same call that a client makes (`live.request`): its checks, its errors and its effects are the API's.
"""

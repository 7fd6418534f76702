"""Executions in the console: the list, a run's page with its timeline, its download, and what follows it live.

    listing.py  search.py      the list: key-set pages of the read model, in the filter language
    rows.py                    the rows of one run, a bounded part of each table
    payloads.py  codec.py      payloads as people read them
    events.py                  an event in words, its relatives
    timeline.py  drawing.py    the run over time: what happened as spans and points, and these as a picture
    facts.py  chain.py         summary, distance to limits, the runs around this one
    download.py                the history as stock SDK replayers read it
    following.py  asking.py    the live side: server-sent events, queries
    views.py  routes.py        the pages

All but `rows`, `listing`, `following`, `asking` and `views` are pure. No page reads all events of a run or scans a table.
"""

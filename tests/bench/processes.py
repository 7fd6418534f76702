"""What process trees cost: CPU time spent and resident memory, read with psutil."""

from __future__ import annotations

import psutil


def _tree(pids: list[int]) -> list[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        root = psutil.Process(pid)
        found[pid] = root
        found |= {child.pid: child for child in root.children(recursive=True)}
    return list(found.values())


def cpu_s(pids: list[int]) -> float:
    """Seconds of CPU that the trees have used, ended children included."""
    total = 0.0
    for process in _tree(pids):
        times = process.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def resident_mib(pids: list[int]) -> float:
    """Memory that the trees hold now, MiB; pages that PostgreSQL's processes share are counted once (PSS)."""
    return sum(process.memory_full_info().pss for process in _tree(pids)) / 2**20

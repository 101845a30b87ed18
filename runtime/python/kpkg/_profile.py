"""Profiles calls per op and launches per kernel: their numbers and times, by `kpkg.profile_kernel()`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import kpkg._native as _native

_taking = threading.Lock()


class Profile:
    """Records every call of an op and every launch of a kernel in the process while its ``with`` block runs.

    CUPTI, NVIDIA's tracing library, times launches on a GPU if the process can load it and no other tool uses it.
    Otherwise a pair of events times each launch; `summary` says which. Launches that are captured into a graph are not
    timed.

    A recorded launch costs the host some microseconds more. Take times of single kernels from a profile, not of whole
    programs. Only one profile can run at a time.
    """

    def __init__(self, ranges: bool, limits: dict[str, float] | None, events: bool = False) -> None:
        self._ranges = ranges
        self._events = events
        self._limits = limits or {}
        #: The records: {"calls": [...], "launches": [...], "dropped": n, "device_times": {"by": ...}}, as
        #: docs/runtime.md says. Empty before the block ends.
        self.records: dict[str, Any] = {"calls": [], "launches": [], "dropped": 0, "device_times": None}

    def __enter__(self) -> Profile:
        if not _taking.acquire(blocking=False):
            raise RuntimeError("another profile is being taken: they do not nest")
        try:
            _native.profile_start(self._ranges, self._events)
        except BaseException:
            _taking.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.records = json.loads(_native.profile_stop())
        finally:
            _taking.release()

    def ops(self) -> list[dict[str, Any]]:
        """Returns a row for each op, the longest first.

        A row has op, calls, host_us (all calls together), device_us (None without GPU), bytes and fallbacks.
        """
        rows: dict[str, dict[str, Any]] = {}
        for call in self.records["calls"]:
            row = rows.setdefault(call["op"], {"op": call["op"], **_NOTHING, "fallbacks": 0})
            _add_host(row, call)
            row["fallbacks"] += call["fell_back"]
        for launch in self.records["launches"]:
            if launch["op"] in rows:
                _add_device(rows[launch["op"]], launch)
        return _longest_first(rows)

    def kernels(self) -> list[dict[str, Any]]:
        """Returns a row for each kernel instance, the longest first.

        A row has instance, op, device, calls, host_us, device_us, bytes, flops, gb_s, gflop_s and of_limit.

        Rates are over the time on the GPU, and on the CPU over the time of the launch. `of_limit` is the share of the
        device's measured bandwidth, None where ``limits`` has none for it. Bytes and operations are estimates of the
        package.
        """
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for launch in self.records["launches"]:
            new = {**{name: launch[name] for name in ("instance", "op", "device")}, **_NOTHING, "flops": 0.0}
            row = rows.setdefault((launch["instance"], launch["device"]), new)
            _add_host(row, launch)
            _add_device(row, launch)
            row["flops"] += launch["flops"]
        for row in rows.values():
            time_us = row["device_us"]
            if time_us is None and row["device"] == "cpu":
                time_us = row["host_us"]
            row["gb_s"], row["gflop_s"] = (
                row[name] / time_us / 1e3 if time_us else None for name in ("bytes", "flops")
            )
            limit = self._limits.get(row["device"])
            row["of_limit"] = row["gb_s"] / limit if limit and row["gb_s"] is not None else None
        return _longest_first(rows)

    def summary(self) -> str:
        """Returns both tables as text."""
        ops, kernels = self.ops(), self.kernels()
        lines = [f"{'op':40} {'calls':>7} {'host us':>10} {'device us':>10} {'fallbacks':>9}"]
        lines += [
            f"{r['op']:40} {r['calls']:7} {r['host_us']:10.1f} {_form(r['device_us'], '.1f'):>10} {r['fallbacks']:9}"
            for r in ops
        ]
        lines += ["", f"{'calls':>7} {'host us':>10} {'device us':>10} {'GB/s':>8} {'GFLOP/s':>9} {'limit':>6}  kernel"]
        lines += [
            f"{r['calls']:7} {r['host_us']:10.1f} {_form(r['device_us'], '.1f'):>10} {_form(r['gb_s'], '.1f'):>8} "
            f"{_form(r['gflop_s'], '.1f'):>9} "
            f"{_form(r['of_limit'], '.0%'):>6}  {r['instance']} ({r['device']})"
            for r in kernels
        ]
        if (times := self.records["device_times"]) is not None:
            lines.append(_how_timed(times))
        if self.records["dropped"]:
            lines.append(f"{self.records['dropped']} records more than are kept were dropped")
        return "\n".join(lines)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace for https://ui.perfetto.dev and chrome://tracing.

        It has calls by thread, and kernels by device and stream.

        Args:
            path: The file to write, as JSON.

        Raises:
            OSError: The file cannot be written.
        """
        host, events = os.getpid(), []
        names: dict[tuple[int, int], str] = {}

        def add(
            name: str, category: str, process: int, thread: int, start_ns: int, duration_ns: int, **of: Any
        ) -> None:
            span = {"ts": start_ns / 1e3, "dur": duration_ns / 1e3}
            events.append({"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread, **span, "args": of})

        for call in self.records["calls"]:
            span = call["start_ns"], call["duration_ns"]
            add(call["op"], "op", host, call["thread"], *span, ok=call["ok"], fell_back=call["fell_back"])
            names[host, call["thread"]] = f"thread {call['thread']}"
        devices: dict[str, int] = {}
        streams: dict[tuple[str, int], int] = {}
        for launch in self.records["launches"]:
            instance, of = launch["instance"], {name: launch[name] for name in ("op", "target", "bytes", "flops")}
            add(instance, "launch", host, launch["thread"], launch["start_ns"], launch["duration_ns"], **of)
            if launch["device_start_ns"] is not None:
                process = devices.setdefault(launch["device"], host + 1 + len(devices))
                stream = streams.setdefault((launch["device"], launch["stream"]), 1 + len(streams))
                names[process, stream] = f"stream {launch['stream']:#x}"
                span = launch["device_start_ns"], launch["device_duration_ns"]
                add(instance, "kernel", process, stream, *span, **of)
        for name, process in [("host", host), *devices.items()]:
            events.append({"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": name}})
        for (process, thread), name in names.items():
            events.append({"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}})
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)


# The sums of a row before its first call or launch.
_NOTHING = {"calls": 0, "host_us": 0.0, "device_us": None, "bytes": 0.0}


def _add_host(row: dict[str, Any], record: dict[str, Any]) -> None:
    row["calls"] += 1
    row["host_us"] += record["duration_ns"] / 1e3


def _add_device(row: dict[str, Any], launch: dict[str, Any]) -> None:
    row["bytes"] += launch["bytes"]
    if launch["device_duration_ns"] is not None:
        row["device_us"] = (row["device_us"] or 0.0) + launch["device_duration_ns"] / 1e3


def _longest_first(rows: dict[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows.values(), key=lambda row: -(row["device_us"] or row["host_us"]))


def _how_timed(times: dict[str, str]) -> str:
    if times["by"] == "cupti":
        return "device times are those of the kernels themselves, by CUPTI"
    reason = f" ({times['reason']})" if times["reason"] else ""
    return f"device times are between events around each launch, some microseconds longer than the kernel alone{reason}"


def _form(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def profile_kernel(ranges: bool = False, limits: dict[str, float] | None = None, events: bool = False) -> Profile:
    """Records calls and kernels within a ``with`` block.

        with kpkg.profile_kernel() as profile:
            y = ops.softmax(x)
        print(profile.summary())
        profile.export_chrome_trace("trace.json")

    Args:
        ranges: Also make each call a range for NVTX tools such as Nsight Systems.
        limits: Bandwidth of devices in GB/s, {"cuda:0": 4000.0, "cpu": 40.0}, as ``kpkg bench`` measures it. The table
            shows the share of it.
        events: Time launches on GPUs by events even where CUPTI could. PyTorch's profiler owns CUPTI from its first
            recording of a GPU on. Later profiles in the process use events and say so.

    Raises:
        ValueError: `ranges` is set, and no NVTX library is found; on entry.
        RuntimeError: Another profile is running; on entry.
    """
    return Profile(ranges, limits, events)

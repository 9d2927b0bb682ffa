#!/usr/bin/env python3
"""Checks `tollgate replay` against figures that this script works out itself from the same lines.

    ci/replay-check.py PATH/TO/tollgate [LOG...]

Each LOG (nginx combined with $msec and $request_time at the end, plain or gzip) and some logs made here are
replayed with several options; admitted, refused, peak, over, false_refusals and top_refused of every algorithm, and
the paced queue's drops and longest wait, must be equal. Nothing here is shared with the tool: lists and loops, no
cleverness.
Standard library only.
"""

import bisect
import datetime
import gzip
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

SECOND = 10**9
SPANS = {"ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
LINE = re.compile(rb'^(\S+) .*? (\d+\.\d+) (\d+\.\d+)\r?$')
OPTIONS = (
    {"limit": 100, "per": "1s"},
    {"limit": 20, "per": "1s", "order": "file", "burst": 30},
    {"limit": 300, "per": "1s", "key": "none", "buckets": 50},
    {"limit": 50, "per": "1s", "rules": ("20/100ms",)},
    {"limit": 10, "per": "100ms", "buckets": 1, "burst": 3},
    {"limit": 7, "per": "3s", "buckets": 3},
    {"limit": 60, "per": "1m", "key": "none"},
    {"limit": 220, "per": "2s", "key": "none"},
    {"limit": 0, "per": "1s"},
    {"limit": 40, "per": "10s", "rules": ("15/1s", "4/100ms"), "order": "file", "buckets": 5},
)
FIGURES = ("admitted", "refused", "rules", "false_refusals")


def nanos(text):
    """Nanoseconds of a decimal number of seconds."""
    whole, _, part = text.partition(".")
    return int(whole) * SECOND + int(part.ljust(9, "0")[:9])


def span(text):
    number, unit = re.fullmatch(r"(\d+)(\D+)", text).groups()
    return int(number) * SPANS[unit]


def rfc3339(time):
    """The moment in UTC with as many digits of the second as it needs."""
    whole = datetime.datetime.fromtimestamp(time // SECOND, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    part = f"{time % SECOND:09}".rstrip("0")
    return whole + ("." + part if part else "") + "Z"


def read(path, kind, order):
    """(time, client) of each line, in the order asked for."""
    opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    requests = []
    with opened as lines:
        for line in lines.read().split(b"\n"):
            if not line:
                continue
            if kind == "epoch":
                time, client = line.decode().split()
                requests.append((nanos(time), client))
                continue
            client, msec, took = (group.decode() for group in LINE.match(line).groups())
            # A server writes a line when the request has ended.
            begun = nanos(msec) - (nanos(took) if order == "time" else 0)
            requests.append((max(begun, 0), client))
    if order == "time":
        requests.sort(key=lambda request: request[0])
    return requests


def decimal_step(least):
    step = 1
    while step < least:
        step *= 10
    return step


def up(time, step):
    return -(-time // step) * step


# === the algorithms: one class each, `ask(now)` for one key, times that never go back ===
# The answer is when the request passes, or None.


class Log:
    def __init__(self, rules, options):
        self.rules, self.times = rules, []

    def ask(self, now):
        for limit, window in self.rules:
            if len(self.times) - bisect.bisect_right(self.times, now - window) >= limit:
                return None
        self.times.append(now)
        return now


class Window:
    """Counts whole buckets, one more than the window has: never over the limit."""

    def __init__(self, rules, options):
        self.rules, self.admitted = rules, []
        self.width = min(window for _, window in rules) // options.get("buckets", 10)

    def ask(self, now):
        bucket = now // self.width
        for limit, window in self.rules:
            oldest = bucket - window // self.width
            if len(self.admitted) - bisect.bisect_left(self.admitted, oldest) >= limit:
                return None
        self.admitted.append(bucket)
        return now


class Fixed:
    def __init__(self, rules, options):
        [(self.limit, self.window)] = rules
        self.counts = {}

    def ask(self, now):
        place = now // self.window
        if self.counts.get(place, 0) >= self.limit:
            return None
        self.counts[place] = self.counts.get(place, 0) + 1
        return now


class Token:
    """Tokens times the window, so that all numbers are whole."""

    def __init__(self, rules, options):
        [(self.limit, self.window)] = rules
        self.full = options.get("burst", self.limit) * self.window
        self.level, self.seen = self.full, 0

    def ask(self, now):
        self.level = min(self.full, self.level + (now - self.seen) * self.limit)
        self.seen = now
        if self.level < self.window:
            return None
        self.level -= self.window
        return now


class Compact:
    """Stamps rounded up to a decimal tick, of which the window has fewer than 2^30."""

    def __init__(self, rules, options):
        [(self.limit, self.window)] = rules
        self.step, self.gone = self.width(), []

    def width(self):
        return decimal_step(self.window // 2**30 + 1)

    def leaves(self, now):
        return up(now, self.step) + self.window

    def ask(self, now):
        if len(self.gone) - bisect.bisect_right(self.gone, now) >= self.limit:
            return None
        self.gone.append(self.leaves(now))
        return now


class Wheel(Compact):
    """Permits come back at the end of a decimal slot, of which 60 x 1,000 reach over the window."""

    def width(self):
        return decimal_step(-(-self.window // 60_000))

    def leaves(self, now):
        return up(now + self.window, self.step)


class TwoWindow:
    """This window's count, and the last one's by the share still in view, rounded up."""

    def __init__(self, rules, options):
        [(self.limit, self.window)] = rules
        self.counts = {}

    def ask(self, now):
        place, here = now // self.window, self.counts.get(now // self.window, 0)
        carried = self.counts.get(place - 1, 0) * (self.window - now % self.window)
        if -(-carried // self.window) + here >= self.limit:
            return None
        self.counts[place] = here + 1
        return now


class Sampled:
    """Remembers every m-th permit; those since the last one remembered count until the newest has left."""

    def __init__(self, rules, options):
        [(self.limit, self.window)] = rules
        self.every = max(self.limit // 100, 1)
        self.times, self.pending, self.newest = [], 0, 0

    def ask(self, now):
        pending = self.pending if self.newest > now - self.window else 0
        young = len(self.times) - bisect.bisect_right(self.times, now - self.window)
        if young * self.every + pending >= self.limit:
            return None
        self.pending, self.newest = pending + 1, now
        if self.pending == self.every:
            self.times.append(now)
            self.pending = 0
        return now


class Paced:
    """Starts an interval apart, in halves or thirds of a nanosecond; an interval finer than that is rounded up."""

    def __init__(self, rules, options):
        [(limit, window)] = rules
        self.places, self.free = options.get("burst", limit) if limit else -1, 0
        self.ticks = min(limit // math.gcd(limit, window), 3) or 1
        self.interval = -(-window * self.ticks // max(limit, 1))

    def ask(self, now):
        start = max(self.free, now * self.ticks)
        if start - now * self.ticks > self.places * self.interval:
            return None
        self.free = start + self.interval
        return -(-start // self.ticks)


ALGORITHMS = {
    "log": Log,
    "window": Window,
    "compact": Compact,
    "fixed": Fixed,
    "two-window": TwoWindow,
    "token": Token,
    "leaky": Token,
    "paced": Paced,
    "sampled": Sampled,
    "wheel": Wheel,
}


def figures(algorithm, requests, rules, options, by_client):
    """What one algorithm does, and how often it refuses each key."""
    limiters, newest, passed, refused, asked = {}, {}, {}, {}, {}
    peaks, false_refusals, used, longest = [0] * len(rules), 0, [], 0
    for time, client in requests:
        key = client if by_client else ""
        now = newest[key] = max(time, newest.get(key, 0))
        used.append(now)
        asked[key] = asked.get(key, 0) + 1
        if key not in limiters:
            limiters[key], passed[key] = ALGORITHMS[algorithm](rules, options), []
        times = passed[key]
        passes = limiters[key].ask(now)
        if passes is not None:
            times.append(passes)
            longest = max(longest, passes - now)
        seen = now if passes is None else passes
        gone = [bisect.bisect_right(times, seen - window) for _, window in rules]
        counts = [bisect.bisect_right(times, seen) - left for left in gone]
        if passes is not None:
            peaks = [max(pair) for pair in zip(peaks, counts)]
        else:
            refused[key] = refused.get(key, 0) + 1
            false_refusals += all(count < limit for count, (limit, _) in zip(counts, rules))
    lost = sum(refused.values())
    result = {
        "algorithm": algorithm,
        "admitted": len(requests) - lost,
        "refused": lost,
        "rules": [{"peak": p, "over": max(p - limit, 0)} for p, (limit, _) in zip(peaks, rules)],
        "false_refusals": false_refusals,
    }
    if algorithm == "paced":
        result |= {"drops": lost, "longest": longest}
    worst = sorted(refused, key=lambda key: (-refused[key], key.encode()))[:10]
    top = [{"key": key, "refused": refused[key], "requests": asked[key]} for key in worst]
    return result, top if by_client else [], len(asked), (min(used), max(used))


def check(tool, path, kind, limit, per, rules=(), order="time", key="client", **options):
    """The differences between the tool's figures and ours."""
    names = list(ALGORITHMS) if not rules else ["log", "window"]
    command = [tool, "replay", path, "--json", "--limit", str(limit), "--per", per, "--key", key, "--order", order]
    command += ["--format", "epoch"] if kind == "epoch" else []
    for rule in rules:
        command += ["--rule", rule]
    for name in names:
        command += ["--algorithm", name]
    for option, value in options.items():
        command += [f"--{option}", str(value)]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        return command, [f"exit code {ran.returncode}: {ran.stderr.strip()}"]
    report = json.loads(ran.stdout)
    limits = [(limit, span(per))]
    limits += [(int(l), span(w)) for l, w in (rule.split("/") for rule in rules)]
    requests = read(path, kind, order)
    differences = []

    def equal(what, theirs, ours):
        if theirs != ours:
            differences.append(f"{what}: the tool says {theirs}, this script {ours}")

    equal("requests", report["input"]["requests"], len(requests))
    equal("order", report["input"]["order"], order)
    equal("rules", report["rules"], [{"limit": l, "window_ns": w} for l, w in limits])
    equal("algorithms", [result["algorithm"] for result in report["results"]], names)
    for place, (name, result) in enumerate(zip(names, report["results"])):
        ours, top, keys, (first, last) = figures(name, requests, limits, options, key == "client")
        for figure in FIGURES:
            equal(f"{name} {figure}", result[figure], ours[figure])
        if name == "paced":
            equal("paced drops", result["drops"], ours["drops"])
            equal("paced longest wait", result["waits"]["max_ns"], ours["longest"])
        if place == 0:
            equal("keys", report["input"]["keys"], keys)
            equal("first", report["input"]["first"], rfc3339(first))
            equal("last", report["input"]["last"], rfc3339(last))
            equal("top_refused", report["top_refused"], top)
    return command, differences


def made(folder, seed):
    """A log of bursts, calm and steps back, from a few clients."""
    rng = random.Random(seed)
    path, now = os.path.join(folder, f"made-{seed}.log"), 1_700_000_000_000
    with open(path, "w", encoding="ascii") as log:
        for _ in range(4000):
            now += rng.choice((0, 0, 0, 1, 1, 7, 40, rng.randrange(2500) if rng.random() < 0.05 else 3))
            late = rng.choice((0, 0, 0, 5, 300, 1000))
            stamp = now - late
            log.write(f"{stamp // 1000}.{stamp % 1000:03} client-{int(rng.expovariate(0.7))}\n")
    return path


def edges(folder):
    """Clients of one request, long after it a burst, then one more, a few nanoseconds to either side of the window."""
    path, now = os.path.join(folder, "edges.log"), 1_700_000_000 * SECOND
    with open(path, "w", encoding="ascii") as log:
        for window in sorted({span(options["per"]) for options in OPTIONS}):
            for off in (-1, 0, 1, 12, 62, 60_000):
                now += 400 * SECOND
                burst = now + 200 * SECOND + 37
                for time in (now, *[burst] * 221, burst + window + off):
                    log.write(f"{time // SECOND}.{time % SECOND:09} client-{window}-{off}\n")
    return path


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tool, logs = sys.argv[1], sys.argv[2:]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        here = [made(folder, seed) for seed in range(3)] + [edges(folder)]
        cases = [(log, "nginx") for log in logs] + [(log, "epoch") for log in here]
        for log, kind in cases:
            # Logs that were given may be long: a few options will do for them.
            for options in OPTIONS[:4] if kind == "nginx" else OPTIONS:
                command, differences = check(tool, log, kind, **options)
                passed, failed = passed + (not differences), failed + bool(differences)
                if differences:
                    print("FAILED", " ".join(command[1:]))
                    print("".join(f"  {difference}\n" for difference in differences), end="")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()

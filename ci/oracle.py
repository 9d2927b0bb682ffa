"""What the checks of the tool share: reading logs and limiting them, with nothing of the tool's in it.

Lists and loops, no cleverness. Standard library only.
"""

import bisect
import datetime
import gzip
import math
import os
import random
import re

SECOND = 10**9
SPANS = {"ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
LINE = re.compile(rb'^(\S+) .*? (\d+\.\d+) (\d+\.\d+)\r?$')


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
    """Counts whole buckets, one more than the window has: never over the limit. Edges may be moved by a phase."""

    def __init__(self, rules, options):
        self.rules, self.admitted = rules, []
        self.width = min(window for _, window in rules) // options.get("buckets", 10)
        self.phase = options.get("phase", 0)

    def ask(self, now):
        bucket = (now + self.phase) // self.width
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

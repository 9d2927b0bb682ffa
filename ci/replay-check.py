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
import json
import os
import subprocess
import sys
import tempfile

from oracle import ALGORITHMS, SECOND, made, read, rfc3339, span

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

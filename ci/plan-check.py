#!/usr/bin/env python3
"""Checks `tollgate plan` against figures that this script works out itself from the same lines.

    ci/plan-check.py PATH/TO/tollgate [LOG...]

Each LOG (nginx combined with $msec and $request_time at the end, plain or gzip) and some logs made here are planned
with several options. Peaks, limits, what each limit refuses, whom, what the counter refuses with every number of
buckets, what the capacity leaves, and the choice must be equal. The tool tells all limits from one pass; here
every limit is tried on its own. Standard library only.
"""

import bisect
import fractions
import json
import subprocess
import sys
import tempfile

from oracle import SECOND, Log, Window, made, read, rfc3339, span

OPTIONS = (
    {"windows": "1s,10s", "refuse_at_most": "0.1%"},
    {"windows": "100ms,3s,1m", "refuse_at_most": "2%", "capacity": "1390/2s", "headroom": "25%"},
    {"windows": "1s", "refuse_at_most": "10%", "key": "none", "capacity": "90/m"},
    {"windows": "7ms", "refuse_at_most": "0%"},
    {"windows": "250ms", "refuse_at_most": "100%"},
)


def share(text):
    return fractions.Fraction(text.rstrip("%")) / 100


def rank(values, part):
    """The smallest of the sorted values that so many of them do not pass."""
    return values[-(-len(values) * part // 1000) - 1] if values else 0


def refusals(requests, make):
    """How often each key is refused by a limiter of its own."""
    limiters, refused = {}, {}
    for time, key in requests:
        if key not in limiters:
            limiters[key] = make()
        if limiters[key].ask(time) is None:
            refused[key] = refused.get(key, 0) + 1
    return refused


def busiest(requests, window):
    """By key: the most requests within one window; and the end of the first window as busy as any."""
    times, peaks, ends = {}, {}, 0
    for time, key in requests:
        own = times.setdefault(key, [])
        own.append(time)
        count = len(own) - bisect.bisect_right(own, time - window)
        if count > max(peaks.values(), default=0):
            ends = time
        peaks[key] = max(peaks.get(key, 0), count)
    return peaks, ends


def alive(requests, window):
    """The most keys with a request within one window."""
    newest, most = {}, 0
    for time, key in requests:
        newest.pop(key, None)
        newest[key] = time
        while next(iter(newest.values())) <= time - window:
            del newest[next(iter(newest))]
        most = max(most, len(newest))
    return most


def smallest(requests, window, allowed, peak):
    """The smallest limit that refuses at most so many: more is never refused by a larger one."""
    low, high = 0, peak
    while low < high:
        middle = (low + high) // 2
        if sum(refusals(requests, lambda: Log([(middle, window)], {})).values()) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


def expected(requests, window, options, by_key, told):
    """The figures of one window; of `told` only which limits and numbers of buckets to look at."""
    keyed = requests if by_key else [(time, "") for time, _ in requests]
    peaks, ends = busiest(keyed, window)
    ordered = sorted(peaks.values())
    part = share(options["refuse_at_most"])
    allowed, spared = int(part * len(requests)), int(part * len(ordered))
    by_requests = smallest(keyed, window, allowed, ordered[-1])
    by_keys = ordered[-1 - spared] if spared < len(ordered) else 0
    proposed = max(by_requests, by_keys)
    refused = {}

    def at(limit):
        if limit not in refused:
            refused[limit] = refusals(keyed, lambda: Log([(limit, window)], {}))
        keys = sum(peak > limit for peak in ordered)
        assert len(refused[limit]) == keys
        return {"requests": sum(refused[limit].values()), "keys": keys}

    together = [(time, "") for time, _ in requests]
    worst = sorted(at(proposed) and refused[proposed], key=lambda key: (-refused[proposed][key], key.encode()))[:10]
    figures = {
        "window_ns": window,
        "peaks": {f"p{name}": rank(ordered, part) for name, part in ((50, 500), (90, 900), (99, 990), (999, 999))}
        | {"max": ordered[-1]},
        "busiest_ends": rfc3339(ends),
        "together_peak": busiest(together, window)[0][""],
        "keys_alive": alive(keyed, window),
        "allowed": allowed,
        "limit": {"proposed": proposed, "by_requests": by_requests, "by_keys": by_keys},
        "refused": at(proposed),
        "effects": [{"limit": effect["limit"], **at(effect["limit"])} for effect in told["effects"]],
        "refused_most": [
            {"key": key, "refused": refused[proposed][key], "requests": sum(k == key for _, k in keyed)}
            for key in (worst if by_key else [])
        ],
        "counter": [],
        "together": None,
    }
    for row in told["counter"]:
        width = window // row["buckets"]
        phased = (
            sum(refusals(keyed, lambda: Window([(proposed, window)], row | {"phase": width * phase // 4})).values())
            for phase in range(4)
        )
        counts = sorted(phased)
        figures["counter"].append({"buckets": row["buckets"], "refused": [counts[0], counts[-1]]})
    if "capacity" in options:
        count, per = options["capacity"].split("/")
        fits = fractions.Fraction(int(count) * window, span(per if per[0].isdigit() else f"1{per}"))
        limit = int(fits * (1 - share(options.get("headroom", "0%"))))
        counts = refusals(together, lambda: Log([(limit, window)], {}))
        figures["together"] = {"limit": limit, "refused_requests": sum(counts.values())}
    return figures


def choice(told):
    """The algorithm and the buckets, by the rule in the help, from the memory that the tool tells."""
    preset = 10 if told["window_ns"] < 5 * SECOND else 50 if told["window_ns"] < 30 * SECOND else 60
    kept = [row for row in told["counter"] if row["buckets"] >= preset and row["refused"][1] <= told["allowed"]]
    got = told["choice"]
    if got["algorithm"] == "log":
        saves = kept and got["bytes_per_key"] > kept[0]["bytes_per_key"]
        return not (saves and got["bytes_per_key"] * told["keys_alive"] > 16 << 20)
    return (got["buckets"], got["bytes_per_key"]) == (kept[0]["buckets"], kept[0]["bytes_per_key"])


def check(tool, path, kind, options):
    """The differences between the tool's figures and ours."""
    command = [tool, "plan", path, "--json"] + (["--format", "epoch"] if kind == "epoch" else [])
    for option, value in options.items():
        command += [f"--{option.replace('_', '-')}", value]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        return command, [f"exit code {ran.returncode}: {ran.stderr.strip()}"]
    report, differences = json.loads(ran.stdout), []
    requests = read(path, kind, "time")
    windows = [span(text) for text in options["windows"].split(",")]
    if (report["input"]["requests"], len(report["windows"])) != (len(requests), len(windows)):
        return command, ["requests or windows are missing"]
    mean = len(requests) / (requests[-1][0] - requests[0][0])
    for window, told in zip(windows, report["windows"]):
        for name, ours in expected(requests, window, options, options.get("key") != "none", told).items():
            theirs = told[name]
            if name == "counter":
                theirs = [{"buckets": row["buckets"], "refused": row["refused"]} for row in theirs]
            if theirs != ours:
                differences.append(f"{window} {name}: the tool says {theirs}, this script {ours}")
        if abs(told["together_mean"] - mean * window) > 1e-9 * mean * window:
            differences.append(f"{window} together_mean: the tool says {told['together_mean']}, not {mean * window}")
        if not choice(told):
            differences.append(f"{window} choice: {told['choice']}")
    return command, differences


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tool, logs = sys.argv[1], sys.argv[2:]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [(log, "nginx", OPTIONS[:1]) for log in logs]
        cases += [(made(folder, seed), "epoch", OPTIONS) for seed in range(2)]
        for log, kind, all_options in cases:
            for options in all_options:
                command, differences = check(tool, log, kind, options)
                passed, failed = passed + (not differences), failed + bool(differences)
                if differences:
                    print("FAILED", " ".join(command[1:]))
                    print("".join(f"  {difference}\n" for difference in differences), end="")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()

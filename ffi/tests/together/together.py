#!/usr/bin/env python3
"""Programs that share a region, killed again and again: together they never exceed a limit.

    together.py [--seconds N] NAME=COMMAND NAME=COMMAND ..

A command is run with the arguments REGION LIMIT WINDOW_NS KEYS JOURNAL, and does what party.c says until it is killed. Two
runs: one with a short window, audited over every window of each subject; one with a window of an hour, of which exactly the
limit is had, less what was killed on its way into the journal.
"""

import array
import ctypes
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict

AT_ONCE = 3  # processes of each party
LIFE = 0.02  # the longest life of a process, in seconds
KEYS = 5

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """Run in a child: it would write into its journal for ever if we were killed, and the journal lies in memory."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Party:
    """Processes of one program. A party of another kind has the same methods."""

    def __init__(self, name, command):
        self.name, self.command, self.kills = name, shlex.split(command), 0

    def start(self, arguments):
        """Starts a process, and returns what `kill` is to be given."""
        return subprocess.Popen(self.command + arguments, close_fds=False, preexec_fn=die_with_parent)

    def kill(self, process):
        """Kills one, which must have lived until then."""
        process.send_signal(signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            sys.exit(f"together: {self.name} ended by itself: {process.returncode}")
        self.kills += 1

    def end(self, _journal):
        """Ends what is left when all are killed, and puts what is not there yet into the journal."""


def run(parties, arguments, seconds):
    """Lets the parties run for so long, each process for a while."""
    alive = [(party, party.start(arguments)) for party in parties for _ in range(AT_ONCE)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.random() * LIFE / len(alive))
        party, process = alive.pop(random.randrange(len(alive)))
        party.kill(process)
        alive.append((party, party.start(arguments)))
    for party, process in alive:
        party.kill(process)
    for party in parties:
        party.end(arguments[-1])


def entries(journal):
    """Admissions by subject, as pairs of times."""
    words = array.array("Q")
    with open(journal, "rb") as file:
        words.frombytes(file.read())
    of = defaultdict(list)
    for at in range(0, len(words), 4):
        of[words[at]].append((words[at + 2], words[at + 1]))
    return of


def fullest(times, window):
    """The most admissions that surely lie in one window (end - window, end]."""
    times.sort()
    most = first = 0
    for at, (end, _) in enumerate(times):
        while times[first][0] + window <= end:
            first += 1
        most = max(most, sum(since + window > end for _, since in times[first : at + 1]))
    return most


def short_windows(parties, folder, seconds):
    limit, window = 40, 2_000_000
    region, journal = f"{folder}/region", f"{folder}/journal"
    open(journal, "x").close()
    run(parties, [region, str(limit), str(window), str(KEYS), journal], seconds)
    of = entries(journal)
    counts = {subject: fullest(times, window) for subject, times in of.items()}
    if sorted(counts) != list(range(KEYS + 1)) or any(count > limit for count in counts.values()):
        sys.exit(f"together: limit {limit}, admissions in one window by subject: {counts}")
    # That an audit of one less would have failed shows that it counts.
    if max(counts.values()) < limit:
        sys.exit(f"together: no window was ever full: {counts}")
    admitted = sum(map(len, of.values()))
    return f"{admitted} admissions of a limiter and {len(of) - 1} keys, at most {max(counts.values())} of {limit} in any window"


def long_window(parties, folder, seconds):
    limit, window = 20_000, 3600 * 1_000_000_000
    region, journal = f"{folder}/total", f"{folder}/total-journal"
    open(journal, "x").close()
    before = sum(party.kills for party in parties)
    run(parties, [region, str(limit), str(window), str(KEYS), journal], seconds)
    kills = sum(party.kills for party in parties) - before
    recorded = Counter({subject: len(times) for subject, times in entries(journal).items()})
    lost = {subject: limit - recorded[subject] for subject in range(KEYS + 1)}
    if min(lost.values()) < 0 or sum(lost.values()) > kills:
        sys.exit(f"together: limit {limit}, {kills} kills, recorded {dict(recorded)}")
    return f"then {recorded.total()} of {limit * (KEYS + 1)} permits recorded, the others by {kills} killed"


def together(parties, seconds):
    """Both runs; what there is to tell of them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tollgate-together-") as folder:
        told = [short_windows(parties, folder, seconds / 2), long_window(parties, folder, seconds / 2)]
    kills = ", ".join(f"{party.name} {party.kills}" for party in parties)
    return f"together: kills: {kills}; {'; '.join(told)}"


def main(arguments):
    seconds = 6.0
    if arguments[:1] == ["--seconds"]:
        seconds, arguments = float(arguments[1]), arguments[2:]
    parties = [Party(*argument.split("=", 1)) for argument in arguments]
    if not parties:
        sys.exit(__doc__)
    print(together(parties, seconds))


if __name__ == "__main__":
    main(sys.argv[1:])

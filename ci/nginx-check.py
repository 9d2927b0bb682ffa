#!/usr/bin/env python3
"""Runs nginx with the module, and checks what clients get, what the logs say, and that no window goes over.

    ci/nginx-check.py MODULE.so PARTIES [STEP..]

MODULE.so is what ffi/examples/nginx/build.sh builds; PARTIES is a folder with the programs rust and c of ffi/tests/together. Every nginx here has
a folder of its own and a free port of the loopback device, and is ended by its pid. Needs wrk. Standard library only.
"""

import bisect
import http.client
import os
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "../ffi/tests/together"))
from together import Party, fullest, together

SECOND = 1_000_000_000
WORKERS = 4
AUDIT = "log_format audit '$pid $tollgate_asked $tollgate_judged $msec';"


class Nginx:
    """A server with this inside of http {}; a context."""

    def __init__(self, module, http, workers=WORKERS):
        self.module, self.workers = module, workers
        self.folder = tempfile.TemporaryDirectory(prefix="tollgate-nginx-")  # goes with this object
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.configure(http)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def configure(self, http):
        user = "user root;" if os.geteuid() == 0 else ""
        paths = "".join(
            f"{kind}_temp_path {self.path(kind)};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        with open(self.path("nginx.conf"), "w") as conf:
            conf.write(
                f"load_module {self.module}; {user} worker_processes {self.workers}; daemon off;\n"
                f"pid {self.path('pid')}; error_log {self.path('error.log')} notice;\n"
                "events { worker_connections 512; }\n"
                f"http {{ {paths} access_log off; keepalive_requests 1000000000; {AUDIT}\n"
                f"{http.replace('LISTEN', f'listen 127.0.0.1:{self.port} reuseport;').replace('FOLDER', self.folder.name)}\n}}\n"
            )

    def command(self, *arguments):
        return ["nginx", "-p", self.folder.name, "-c", self.path("nginx.conf"), *arguments]

    def __enter__(self):
        self.master = subprocess.Popen(self.command(), stderr=subprocess.PIPE, text=True)
        wait_for("nginx listens", lambda: self.master.poll() is not None or len(self.pids()) == self.workers)
        if self.master.poll() is not None:
            raise AssertionError(f"nginx has ended: {self.master.stderr.read()}")
        return self

    def __exit__(self, *_):
        self.master.terminate()
        self.master.wait(timeout=20)

    def kill_all(self):
        """Kills the master and the workers, which would live on without it; how many."""
        doomed = [self.master.pid, *self.pids()]
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        self.master.wait()
        wait_for("all are gone", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in doomed))
        return len(doomed)

    def pids(self):
        """The workers."""
        pid = self.master.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                return [int(child) for child in children.read().split()]
        except OSError:
            return []

    def busy(self):
        """Nanoseconds that the workers have run."""
        return sum(int(open(f"/proc/{pid}/schedstat").read().split()[0]) for pid in self.pids())

    def test(self):
        """What nginx says of the configuration."""
        done = subprocess.run(self.command("-t"), capture_output=True, text=True)
        return done.returncode, done.stderr

    def reload(self, http):
        """Gives it another configuration; what it then writes to the error log."""
        before, size = self.pids(), os.path.getsize(self.path("error.log"))
        self.configure(http)
        self.master.send_signal(signal.SIGHUP)
        is_new = lambda: len(self.pids()) == self.workers and not set(before) & set(self.pids())
        wait_for("nginx reloads", lambda: is_new() or "[emerg]" in self.errors(size))
        return self.errors(size)

    def errors(self, start=0):
        return self.text("error.log")[start:]

    def text(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def get(self, path):
        """The status of an answer, and its fields: a list of pairs."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def wrk(self, path, seconds, connections=32):
        """A running wrk."""
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{self.port}{path}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(what, is_so, seconds=20):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def equal(got, expected, what):
    if got != expected:
        raise AssertionError(f"{what}: {got!r}, not {expected!r}")


def holds(is_so, what):
    if not is_so:
        raise AssertionError(what)


# === counting ===


def admissions(log):
    """Of each admission in an audit log the time judged, that of the call (it was recorded between them), and the worker."""
    lines = (line.split() for line in log.splitlines())
    return [(int(judged), int(asked), pid) for pid, asked, judged, _ in lines]


def most(found, window):
    """The most admissions that were surely within one window (t - window, t]."""
    return fullest([(judged, asked) for judged, asked, _ in found], window)


def by_window(times, window):
    """Admissions in each whole window, the first of which begins with the first admission."""
    times = sorted(times)
    counts = [0] * (int((times[-1] - times[0]) // window) + 1)
    for at in times:
        counts[int((at - times[0]) // window)] += 1
    return counts[:-1]


# === steps ===

QUIET = "map $status $is_admitted { 200 1; default 0; } limit_req_log_level info; tollgate_log_level info; limit_req_status 429;"


def location(path, directives, name=None):
    log = f"access_log FOLDER/{name}.log audit if=$is_admitted;" if name else ""
    return f"location {path} {{ {directives} {log} empty_gif; }}\n"


def step_exact(module, _):
    """Four workers under wrk: each window has the limit, exactly, beside what limit_req admits of the same traffic."""
    limit, window, seconds = 400, SECOND, 3
    # Zones `one` and `two` are two where there should be one: what the audit must find.
    server = Nginx(
        module,
        QUIET
        + f"tollgate_zone name=exact size=1m; limit_req_zone all zone=plain:1m rate={limit}r/s;"
        + f"limit_req_zone all zone=burst:1m rate={limit}r/s;"
        + "tollgate_zone name=one size=1m; tollgate_zone name=two size=1m;"
        + "server { LISTEN"
        + location("/exact", f"tollgate zone=exact key=all rate={limit}r/s;", "exact")
        + location("/plain", "limit_req zone=plain;", "plain")
        + location("/burst", f"limit_req zone=burst burst={limit - 1} nodelay;", "burst")
        + "".join(location(f"/{zone}", f"tollgate zone={zone} key=all rate={limit}r/s;", "doubled") for zone in ("one", "two"))
        + "}",
    )
    with server:
        # So many connections that each worker has some.
        for load in [server.wrk(path, seconds, 64) for path in ("/exact", "/plain", "/burst")]:
            holds(load.wait() == 0, "wrk")
        found = admissions(server.text("exact.log"))
        counts = by_window([asked for _, asked, _ in found], window)
        holds(len(counts) >= seconds - 1, f"hardly a window: {counts}")
        equal(set(counts), {limit}, f"admissions in each window: {counts}")
        equal(most(found, window), limit, "the most in any window")
        equal(len({pid for *_, pid in found}), WORKERS, "workers that admitted")
        print(f"exact: limit {limit} a second, {WORKERS} workers. tollgate: {numbers(counts)}, at most {most(found, window)} in any second")
        for name, what in (("plain", "limit_req"), ("burst", f"limit_req burst={limit - 1} nodelay")):
            times = [int(line.split()[-1].replace(".", "")) for line in server.text(f"{name}.log").splitlines()]
            counts = by_window(times, 1000)
            holds(set(counts) != {limit}, f"{what} was exact as well")
            print(f"exact: the same traffic by {what}: {numbers(counts)}")
        for load in [server.wrk(path, 1, 8) for path in ("/one", "/two")]:
            holds(load.wait() == 0, "wrk")
        doubled = most(admissions(server.text("doubled.log")), window)
        equal(doubled, 2 * limit, "what the audit finds where the limit is twice as high")
    print(f"exact: the audit finds {doubled} in a second where two zones stand in for one")


def numbers(counts):
    return " ".join(str(count) for count in counts)


def step_killed(module, _):
    """Workers are killed in mid-traffic: never over, no more lost than they were doing, and those that replace them go on."""
    limit, window, kills = 400, SECOND, 0
    server = Nginx(
        module,
        QUIET + "tollgate_zone name=killed size=1m; server { LISTEN"
        + location("/killed", f"tollgate zone=killed key=all limit={limit} window=1s;", "killed") + "}",
    )
    with server:
        first = server.pids()
        load = server.wrk("/killed", 4)
        for pause in (1.3, 0.02, 1.2, 0.02):
            time.sleep(pause)
            # The first two at once while the window is full, and again when it is about to be.
            os.kill(server.pids()[0], signal.SIGKILL)
            kills += 1
        holds(load.wait() == 0, "wrk")
        wait_for("all workers are back", lambda: len(server.pids()) == WORKERS)
        found = admissions(server.text("killed.log"))
        counts = by_window([asked for _, asked, _ in found], window)
        holds(most(found, window) <= limit, f"{most(found, window)} in one window")
        holds(min(counts) >= limit - kills, f"more lost than the killed did: {counts}")
        later = [pid for judged, _, pid in found if judged > found[0][0] + 3 * window and int(pid) not in first]
        holds(later, "nothing admitted by a worker that replaced another")
        holds("signal 9" in server.errors(), "no worker was killed")
    print(f"killed: {kills} workers killed in mid-traffic. {numbers(counts)}, at most {most(found, window)} in any second")


def step_reload(module, _):
    """A reload keeps what was taken; what cannot be kept is told."""
    http = "tollgate_zone name=kept size={size}; server {{ LISTEN" + location(
        "/", "tollgate zone=kept key=all limit={limit} window=60s algorithm=log;"
    ).replace("{ t", "{{ t").replace("; }", "; }}") + "}}"
    with Nginx(module, http.format(size="1m", limit=6)) as server:
        statuses = lambda count: [server.get("/")[0] for _ in range(count)]
        equal(statuses(4), [200] * 4, "before")
        server.reload(http.format(size="1m", limit=6))
        equal(statuses(3), [200, 200, 429], "after a reload")
        workers = server.pids()
        said = server.reload(http.format(size="1m", limit=7))
        expected = (
            'tollgate zone "kept" is in use with 6 per 60s (log), when_full=share and cannot change to 7 per 60s (log), '
            "when_full=share: give the new zone another name"
        )
        holds(f"[emerg] {server.master.pid}#{server.master.pid}: {expected}" in said, said)
        equal((statuses(1), server.pids()), ([429], workers), "the old configuration goes on")
        said = server.reload(http.format(size="2m", limit=6))
        holds('[warn]' in said and 'tollgate zone "kept" has another size than before: it begins anew' in said, said)
        equal(statuses(1), [200], "in a zone of another size")
        said = server.reload(http.format(size="2m", limit=6).replace("kept", "fresh"))
        equal(statuses(7), [200] * 6 + [429], "under another name")
    print("reload: kept across a reload; another limit is refused, another size begins anew, and both are told")


def step_answers(module, _):
    """What clients get, the status variable, and the log."""
    zones = "".join(f"tollgate_zone name={name} size=1m;" for name in ("one", "api", "all", "half", "off", "none", "dry", "inner", "user", "page", "parts"))
    server = Nginx(
        module,
        zones
        + "add_header X-Status '$tollgate_status' always; tollgate_log_level warn;"
        + "server { LISTEN"
        + location("/one", "tollgate zone=one key=all rate=2r/m;")
        + location("/both", "tollgate zone=api key=$arg_who rate=3r/m; tollgate zone=all key=all limit=2 window=1h;")
        + location("/half", "tollgate zone=half key=all limit=3 window=1500ms;")
        + location("/bucket", "tollgate zone=user key=$arg_who rate=10r/s burst=2 algorithm=gcra;")
        + location("/off", "tollgate zone=off key=all rate=1r/m; tollgate_fields off;")
        + location("/none", "tollgate zone=none key=all limit=0 window=1s;")
        + location("/dry", "tollgate zone=dry key=all rate=1r/m; tollgate_dry_run on; tollgate_log_level error;")
        + "location /redirected { tollgate zone=inner key=all rate=1r/m; error_page 429 /inner; try_files /nowhere /inner; }\n"
        + "location /inner { internal; tollgate zone=inner key=all; empty_gif; }\n"
        + location("/page", "tollgate zone=page key=all rate=1r/m; error_page 429 @limited;")
        + "location @limited { internal; default_type application/problem+json; return 429 '{}'; }"
        + location("/parts", "mirror /part; mirror /part; tollgate zone=parts key=all rate=2r/m;")
        + location("/part", "internal; tollgate zone=parts key=all;")
        + location("/free", "")
        + "}",
    )
    fields = ("retry-after", "cache-control", "ratelimit-policy", "ratelimit", "x-status")

    with server:

        def check(path, status, *expected):
            got_status, got = server.get(path)
            equal((got_status, *(got.get(name) for name in fields)), (status, *expected), path)

        one, both = '"one";q=2;w=60', '"api";q=3;w=60, "all";q=2;w=3600'
        check("/one", 200, None, None, one, '"one";r=1;t=60', "PASSED")
        check("/one", 200, None, None, one, '"one";r=0;t=60', "PASSED")
        check("/one", 429, "60", "no-store", one, '"one";r=0;t=60', "REJECTED")
        holds('[warn]' in server.errors(), "nothing logged")
        holds(
            re.search(r'\[warn\] .* limiting requests by zone "one", 2 per 60s \(log\), retry after (59|60)\.\d{3}s, client: 127', server.errors()),
            server.errors(),
        )
        # A key that is empty falls under no limit. Of two limits none is charged for what the other refuses.
        check("/both?who=a", 200, None, None, both, '"all";r=1;t=3600', "PASSED")
        check("/both?who=b", 200, None, None, both, '"all";r=0;t=3600', "PASSED")
        check("/both?who=a", 429, "3600", "no-store", both, '"all";r=0;t=3600', "REJECTED")
        check("/both", 429, "3600", "no-store", '"all";q=2;w=3600', '"all";r=0;t=3600', "REJECTED")
        check("/bucket", 200, None, None, None, None, None)
        check("/half", 200, None, None, '"half";q=3', '"half";r=2;t=2', "PASSED")
        check("/bucket?who=a", 200, None, None, '"user";q=10;w=1', '"user";r=1;t=1', "PASSED")
        check("/off", 200, None, None, None, None, "PASSED")
        check("/off", 429, None, None, None, None, "REJECTED")
        check("/none", 429, None, "no-store", '"none";q=0;w=1', '"none";r=0', "REJECTED")
        check("/dry", 200, None, None, None, None, "PASSED")
        check("/dry", 200, None, None, None, None, "REJECTED_DRY_RUN")
        holds(re.search(r'\[error\] .* limiting requests, dry run, by zone "dry", 1 per 60s', server.errors()), server.errors())
        inner = '"inner";q=1;w=60'
        check("/redirected", 200, None, None, inner, '"inner";r=0;t=60', "PASSED")
        check("/redirected", 429, "60", "no-store", inner, '"inner";r=0;t=60', "REJECTED")
        check("/page", 200, None, None, '"page";q=1;w=60', '"page";r=0;t=60', "PASSED")
        check("/page", 429, "60", "no-store", '"page";q=1;w=60', '"page";r=0;t=60', "REJECTED")
        equal(server.get("/page")[1]["content-type"], "application/problem+json", "a page of one's own")
        parts = '"parts";q=2;w=60'
        check("/parts", 200, None, None, parts, '"parts";r=1;t=60', "PASSED")
        check("/parts", 200, None, None, parts, '"parts";r=0;t=60', "PASSED")
        check("/parts", 429, "60", "no-store", parts, '"parts";r=0;t=60', "REJECTED")
        check("/free", 200, None, None, None, None, None)
    print("answers: statuses, fields, variable, log, dry run, several limits, redirects, subrequests")


def step_file(module, _):
    """A region in a file outlives nginx, and is told from others."""
    http = "tollgate_zone name=file file=FOLDER/region keys={keys} mode=0640; server {{ LISTEN location / {{ tollgate zone=file key=all rate=2r/m; empty_gif; }} }}"
    server = Nginx(module, http.format(keys=10))
    equal(server.test()[0], 0, "a test")
    holds(not os.path.exists(server.path("region")), "a test makes no file")
    for expected in ([200, 200, 429], [429, 429, 429]):
        with server:
            equal([server.get("/")[0] for _ in range(3)], expected, "each start goes on where the last ended")
    equal(oct(os.stat(server.path("region")).st_mode & 0o777), "0o640", "the file's mode")
    server.configure(http.format(keys=100))
    status, said = server.test()
    expected = f'tollgate zone "file" of 100 keys with 2 per 60s (log), when_full=share, in {server.path("region")}: memory holds a limiter of another configuration'
    holds(status != 0 and expected in said, said)
    print("file: kept across a restart; a region of another number of keys is refused")


def step_full(module, _):
    """More keys than there is room for are refused, or share one limiter; those that have a place keep it."""
    said = {}
    for when_full in ("share", "refuse"):
        server = Nginx(
            module,
            f"tollgate_zone name=small size=32k when_full={when_full}; server {{ LISTEN"
            + location("/", "tollgate zone=small key=$arg_who limit=3 window=1h;") + "}",
            workers=1,
        )
        with server:
            room = int(re.search(r'zone "small" has room for (\d+) keys', server.errors()).group(1))
            statuses = [server.get(f"/?who={who}")[0] for who in range(8 * room)]
            equal(server.get("/?who=0")[0], 200, "a key with a place")
            said[when_full] = (room, statuses.count(200), server.errors().count("no room for another key"))
    room, admitted, no_room = said["refuse"]
    holds(room <= admitted <= 2 * room + 14 and no_room == 8 * room - admitted, f"refuse: {said}")
    equal(said["share"], (room, admitted + 3, 0), "share: as many and the one limiter")
    print(f"full: {8 * room} keys where there is room for {room}: {admitted} have a place of their own")


class Workers(Party):
    """An nginx under wrk as a party: what is killed are its workers, or the whole of it."""

    CHANCE = 0.03  # that it is the whole

    def __init__(self, module):
        super().__init__("nginx", module)
        self.module, self.server, self.admitted = module, None, 0

    def start(self, arguments):
        if self.server is None:
            region, limit, window, keys, _ = arguments
            shares = "".join(f"{100 // int(keys)}% {key};" for key in range(1, int(keys) + 1))
            http = (
                f"tollgate_zone name=together file={region} keys={keys} limiters=1 when_full=refuse;"
                f"split_clients $request_id $subject {{ {shares} }}"
                + QUIET
                + "log_format together '$subject $tollgate_asked $tollgate_judged'; server { LISTEN"
                + location(
                    "/",
                    f"tollgate zone=together key=$subject limit={limit} window={int(window) // 1_000_000}ms;"
                    "access_log FOLDER/together.log together if=$is_admitted;",
                )
                + "}"
            )
            self.server = Nginx(self.module, http).__enter__()
            self.load = self.server.wrk("/", 600)
        return self.server

    def kill(self, server):
        if random.random() < self.CHANCE:
            self.kills += server.kill_all()
            server.__enter__()
        elif workers := server.pids():
            os.kill(random.choice(workers), signal.SIGKILL)
            self.kills += 1

    def end(self, path):
        self.load.kill()
        self.load.wait()
        lines = self.server.text("together.log").splitlines()
        self.admitted += len(lines)
        with open(path, "ab") as journal:
            for subject, asked, judged in map(str.split, lines):
                journal.write(struct.pack("=QQQQ", int(subject), int(asked), int(judged), 0))
        self.server.__exit__()
        self.server = None


def step_together(module, parties):
    """A Rust program, a C program and nginx with one region in a file, all killed again and again."""
    workers = Workers(module)
    told = together([Party(name, os.path.join(parties, name)) for name in ("rust", "c")] + [workers], int(os.environ.get("LENGTH", "6")))
    holds(workers.admitted > 100, f"nginx admitted {workers.admitted}; {told}")
    print(f"{told}; {workers.admitted} of them by nginx")


# Keys that a zone of a megabyte has room for (README.md).
ROOM = {
    "gcra": (3787, "rate=100r/s algorithm=gcra"),
    "fixed": (3787, "rate=100r/s algorithm=fixed"),
    "twowin": (3787, "rate=100r/s algorithm=twowin"),
    "window": (1953, "rate=100r/s algorithm=window"),
    "ten": (1953, "rate=10r/s"),
    "hundred": (441, "rate=100r/s"),
    "thousand": (56, "rate=1000r/s"),
}


def step_room(module, _):
    """How many keys fit into a zone."""
    zones = "".join(f"tollgate_zone name={name} size=1m;" for name in ROOM)
    limits = "".join(location(f"/{name}", f"tollgate zone={name} key=all {limit};") for name, (_, limit) in ROOM.items())
    with Nginx(module, zones + "server { LISTEN" + limits + "}", workers=1) as server:
        told = re.findall(r'tollgate zone "(\w+)" has room for (\d+) keys', server.errors())
    equal({name: int(keys) for name, keys in told}, {name: keys for name, (keys, _) in ROOM.items()}, "room")
    print("room: as the page says")


# Directives, and what nginx then says; with None it takes them.
BAD = [
    ("tollgate_zone size=1m;", '"tollgate_zone" must have "name" parameter'),
    ("tollgate_zone name= size=1m;", '"tollgate_zone" must have "name" parameter'),
    ("tollgate_zone name=a\\\\b size=1m;", 'invalid zone name "a\\b": it must be printable ASCII without quotes and backslashes'),
    ("tollgate_zone name=z;", 'zone "z" must have either "size" or "file" parameter'),
    ("tollgate_zone name=z size=1m file=f keys=1;", 'zone "z" must have either "size" or "file" parameter'),
    ("tollgate_zone name=z size=1q;", 'invalid size "1q" of zone "z": it must be like "10m", and at least 32k'),
    ("tollgate_zone name=z size=31k;", 'invalid size "31k" of zone "z": it must be like "10m", and at least 32k'),
    ("tollgate_zone name=z size=1m keys=9;", '"keys", "limiters" and "mode" are for zones in a file, and zone "z" is not'),
    ("tollgate_zone name=z size=1m when_full=drop;", 'invalid when_full "drop": it must be "share" or "refuse"'),
    ("tollgate_zone name=z size=1m; tollgate_zone name=z size=1m;", 'zone "z" is already declared'),
    ("tollgate_zone name=z file= keys=1;", 'zone "z" has no path in "file"'),
    ("tollgate_zone name=z file=f;", 'invalid keys "" of zone "z" in a file: it must be a number above 0'),
    ("tollgate_zone name=z file=f keys=0;", 'invalid keys "0" of zone "z" in a file: it must be a number above 0'),
    ("tollgate_zone name=z file=f keys=1 limiters=-1;", 'invalid limiters "-1" of zone "z": it must be a number'),
    ("tollgate_zone name=z file=f keys=1 mode=888;", 'invalid mode "888" of zone "z": it must be octal, at most 777'),
    ("tollgate_zone name=z size=1m rooms=1;", 'invalid parameter "rooms=1"'),
    ("tollgate_zone name=z size=1m size=2m;", 'duplicate parameter "size=2m"'),
    ("tollgate zone=one;", '"tollgate" must have "key" parameter'),
    ("tollgate key=k;", '"tollgate" must have "zone" parameter'),
    ("tollgate zone=one key=$nothing rate=1r/s;", 'unknown "nothing" variable'),
    ("tollgate zone=one key=k rate=100;", 'invalid rate "100": it must be like "100r/s" or "30r/m"'),
    ("tollgate zone=one key=k rate=1r/h;", 'invalid rate "1r/h": it must be like "100r/s" or "30r/m"'),
    ("tollgate zone=one key=k rate=r/s;", 'invalid rate "r/s": it must be like "100r/s" or "30r/m"'),
    ("tollgate zone=one key=k rate=-1r/s;", 'invalid rate "-1r/s": it must be like "100r/s" or "30r/m"'),
    ("tollgate zone=one key=k rate=18446744073709551616r/s;", 'invalid rate "18446744073709551616r/s": it must be like'),
    ("tollgate zone=one key=k rate=1r/s limit=1;", '"rate" says the same as "limit" and "window": take either'),
    ("tollgate zone=one key=k limit=5;", 'invalid window "": it must be like "60s" or "500ms", beside "limit"'),
    ("tollgate zone=one key=k window=5s;", 'invalid limit "": it must be a number, beside "window"'),
    ("tollgate zone=one key=k limit=5 window=0;", 'invalid window "0": it must be like "60s" or "500ms", beside "limit"'),
    ("tollgate zone=one key=k limit=5 window=99999999999d;", 'invalid window "99999999999d": it must be like "60s"'),
    ("tollgate zone=one key=k limit=5 window=150y;", 'invalid window "150y": it must be like "60s"'),
    ("tollgate zone=one key=k rate=1r/s algorithm=leaky;", 'invalid algorithm "leaky": it must be "log", "window", "fixed", "twowin" or "gcra"'),
    ("tollgate zone=one key=k rate=1r/s burst=5;", '"burst" is for algorithm=gcra alone'),
    ("tollgate zone=one key=k rate=1r/s algorithm=gcra burst=0;", 'invalid burst "0": it must be a number above 0'),
    ("tollgate zone=one key=k burst=5;", '"burst" must stand beside "rate", or "limit" and "window"'),
    ("tollgate zone=one key=k algorithm=log;", '"algorithm" must stand beside "rate", or "limit" and "window"'),
    ("tollgate zone=one key=k rate=1r/s; tollgate zone=one key=j;", 'zone "one" is named twice here'),
    ("tollgate zone=one key=k rate=9999999999r/s;", 'zone "one" cannot have the limit 9999999999 per 1s (log): an argument is out of range'),
    ("tollgate zone=two key=k rate=1r/s;", 'no "tollgate_zone" declares zone "two"'),
    ("tollgate zone=one key=k;", 'no "tollgate" tells the limit of zone "one": one must have "rate", or "limit" and "window"'),
    ("tollgate zone=one key=k rate=1r/s; server { tollgate zone=one key=j rate=2r/s; }",
     'zone "one" has the limit 1 per 1s (log) already, here it is 2 per 1s (log)'),
    ("tollgate zone=one key=k rate=1000000r/s;", 'tollgate zone "one" of 1048576 bytes has no room for keys with 1000000 per 1s (log)'),
    ("tollgate_zone name=z file=FOLDER/nginx.conf keys=9; tollgate zone=z key=k rate=1r/s;", "memory does not hold a limiter"),
    ("tollgate_zone name=z file=FOLDER/none keys=9 limiters=2 mode=0660; tollgate zone=z key=k rate=1r/s;", None),
    ("tollgate_zone name=z file=FOLDER keys=9; tollgate zone=z key=k rate=1r/s;", ", in FOLDER: "),
    ("limit_req_zone k zone=one:1m rate=1r/s;", 'the shared memory zone "one" is already declared for a different use'),
    ("tollgate_log_level loud;", 'invalid value "loud"'),
]


def step_errors(module, _):
    """Every mistake in a directive has a message of its own."""
    server = Nginx(module, "")
    for directives, expected in BAD:
        server.configure("tollgate_zone name=one size=1m;" + directives)
        status, said = server.test()
        if expected is None:
            equal(status, 0, f"{directives} {said}")
        else:
            holds(status != 0 and expected.replace("FOLDER", server.folder.name) in said, f"{directives}\n  {said}")
    print(f"errors: {len(BAD)} configurations, each with its message")


def step_speed(module, _):
    """Requests a second and their times beside limit_req, in turns."""
    rounds, seconds = int(os.environ.get("ROUNDS", "3")), 1
    paths = {
        "no limit": ("/free", ""),
        "limit_req, admits": ("/req", "limit_req zone=req burst=1000000000 nodelay;"),
        "tollgate, admits": ("/log", "tollgate zone=log key=$binary_remote_addr limit=100000 window=1s;"),
        "limit_req, refuses": ("/req0", "limit_req zone=req0;"),
        "tollgate, refuses": ("/log0", "tollgate zone=log0 key=$binary_remote_addr rate=1r/m;"),
    }
    zones = "".join(f"tollgate_zone name={name} size=32m;" for name in ("log", "log0"))
    zones += "limit_req_zone $binary_remote_addr zone=req:32m rate=1000000r/s; limit_req_zone $binary_remote_addr zone=req0:32m rate=1r/m;"
    server = Nginx(module, QUIET + zones + "server { LISTEN" + "".join(location(*of) for of in paths.values()) + "}")
    figures = {name: [] for name in paths}
    with server:
        for _ in range(rounds):
            for name, (path, _) in random.sample(list(paths.items()), len(paths)):
                busy = server.busy()
                said = server.wrk(path, seconds).communicate()[0]
                busy = server.busy() - busy
                refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
                total = int(re.search(r"(\d+) requests in", said).group(1))
                share = int(refused.group(1)) / total if refused else 0
                holds(share > 0.99 if "refuses" in name else share == 0, f"{name}: not the path it names: {share}")
                spans = [milliseconds(re.search(rf"\n +{part}%\s+(\S+)", said).group(1)) for part in (50, 99)]
                figures[name].append((float(re.search(r"Requests/sec:\s+(\S+)", said).group(1)), busy / total / 1000, *spans))
    print(f"speed: medians of {rounds} rounds of {seconds} s in turns, {WORKERS} workers, 32 connections, {os.cpu_count()} cores with wrk on them")
    for name, of in figures.items():
        (rate, busy, median, high), best = (statistics.median(figure) for figure in zip(*of)), max(of)[0]
        print(
            f"speed: {name:18}{busy:5.1f} us of a worker each, {rate:7.0f} requests/s, at best {best:7.0f}, p50 {median:6.3f} ms, p99 {high:6.3f} ms"
        )


def milliseconds(span):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", span).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


STEPS = [step_errors, step_answers, step_room, step_file, step_full, step_reload, step_exact, step_killed, step_together, step_speed]


def main():
    module, parties, *names = sys.argv[1:]
    steps = {step.__name__.removeprefix("step_"): step for step in STEPS}
    for name in names or steps:
        start = time.monotonic()
        steps[name](os.path.abspath(module), os.path.abspath(parties))
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


main()

#!/usr/bin/env python3
"""Breaks the tier's protocol and the scripts, one rule at a time, and expects the tests to notice.

    redis/mutants.py [NAME..]       all, or those whose name contains a NAME
    redis/mutants.py --tenth N      every tenth, from the Nth

Works on a copy of the tree; the build folder is kept between runs. A mutant that lives is an error.
"""
import os, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BREAKER, DESK, LIMITER, INSTANCES, LOCAL, ONE, RING, DECIDE, ZSET, BUCKETS, GCRA, TWO = (f"redis/src/{name}" for name in (
    "breaker.rs", "desk.rs", "limiter.rs", "instances.rs", "local.rs", "lua/ring_one.lua", "lua/ring.lua", "lua/decide.lua", "lua/zset.lua",
    "lua/buckets.lua", "lua/gcra.lua", "lua/two_window.lua"))
MODEL, CHANGE, OWN = ["--lib", "desk::"], ["--lib", "instances::"], ["--lib", "local::"]
SERVER = ["--test", "redis", "differential::"]

# name, file, what stands there, what stands there instead, the tests that must notice
MUTANTS = [
    ("a lease counted from its arrival", DESK, "let until = sent + shortened(order.hold);", "let until = sent + Nanos::from_nanos(9_000) + shortened(order.hold);", MODEL),
    ("a lease spent after its end", DESK, "|held| now < held.until && cost", "|held| cost", MODEL),
    ("a lease never used up", DESK, "held.left -= cost; // I1, I2", "held.left -= cost - 1;", MODEL),
    ("a lease for more than is left", DESK, "&& cost <= held.left)", "&& held.left > 0 || cost == 9)", MODEL),
    ("a lease that does not allow for a slow clock", DESK, "span.as_nanos().div_ceil(1_000)", "0", MODEL),
    ("a refusal counted from its arrival", DESK, "let until = sent + shortened(wait).min(longest);", "let until = sent + wait + wait;", MODEL),
    ("a refusal without end", DESK, "self.full.filter(|full| now < full.until && cost >= full.cost)?", "self.full.filter(|full| cost >= full.cost)?", MODEL),
    ("a refusal repeated for smaller costs", DESK, "now < full.until && cost >= full.cost)?", "now < full.until)?", MODEL),
    ("a refusal kept across a change", DESK, "if ticket.epoch == self.epoch {", "if true {", MODEL),
    ("an order kept across a change", DESK, "if order.epoch != self.epoch {", "if false {", MODEL),
    ("a lease kept across a reset", DESK, "(self.epoch, self.full, self.held) = (epoch, None, None);", "(self.epoch, self.full) = (epoch, None);", MODEL),
    ("a refusal kept by the desk across a change", DESK, "(self.epoch, self.full, self.held) = (epoch, None, None);", "(self.epoch, self.held) = (epoch, None);", MODEL),
    ("a unit handed out twice", DESK, "                granted -= 1;\n", "                granted -= u64::from(granted % 2 == 0);\n", MODEL),
    ("callers left waiting after a failure", DESK, "offer(caller, Err(failure));", "self.waiting.push_back(caller);", MODEL),
    ("callers forgotten after a refusal", DESK, "offer(caller, Ok((Reply { granted: 0, ..reply }, By::Redis)));", "let _ = caller;", MODEL),
    ("two orders under way", DESK, "        if self.under_way {\n            return Arrival::Waits;\n        }\n", "", MODEL),
    ("nobody sees the next order through", DESK, "self.under_way.then(|| self.order(tiers, ceiling))", "None", MODEL),
    ("two leases until the later end", DESK, "until: until.min(held.until)", "until: until.max(held.until)", MODEL),
    ("a lease that ends with one used up", DESK, "|held| held.left > 0 && now", "|held| now", MODEL),
    ("two leases and the first is lost", DESK, "left: held.left + granted", "left: granted", MODEL),
    ("figures that nobody knows", DESK, "!figures || reply.figures.is_some()", "!figures || reply.figures.is_none() || true", ["--test", "redis", "tiers::a_check"]),
    ("a shared call lost with its runtime", LIMITER, "self.land(Err(Failure::Connection), self.inner.now());", "self.order = None;", ["--test", "redis", "failures::a_runtime"]),
    ("a breaker open without failures", BREAKER, " || self.is_open()", "", ["--lib", "breaker::"]),
    ("portions: the remainder dealt out once more", INSTANCES, "(index < limit % count) as u64", "(index <= limit % count) as u64", CHANGE),
    ("portions: the remainder kept back", INSTANCES, "part + (index < limit % count) as u64", "part", CHANGE),
    ("bound: nobody moves to another place", INSTANCES, "let place = most - 1 - index;", "let place = index;", CHANGE),
    ("bound: the portions before", INSTANCES, "if before > after { before } else { after }", "before", CHANGE),
    ("bound: the portions after", INSTANCES, "if before > after { before } else { after }", "after", CHANGE),
    ("own use forgotten with the window", LOCAL, "anew.try_acquire_at(counted.usage_at(0, now).unwrap_or(0).min(largest(&anew)), now);", "", OWN),
    ("own use by the old window", LOCAL, "old.window != rule.window", "old.window > rule.window", OWN),
    ("everyday: one too many", ONE, "oldest + window - eff", "oldest + window - eff - 1", SERVER),
    ("everyday: the clock runs back", ONE, "if clock > eff then eff = clock end", "", SERVER),
    ("everyday: records run back", ONE, "if last > record then record = last end", "", SERVER),
    ("everyday: recorded at the grant", ONE, "local record = eff + hold", "local record = eff", SERVER),
    ("everyday: a lowered limit", ONE, "C == limit", "C >= limit", SERVER),
    ("everyday: a raised limit", ONE, "C == limit", "C <= limit", SERVER),
    ("everyday: a full block is not put away", ONE, "C <= 16 or n % 16 > 0", "true", SERVER),
    ("everyday: the first block loses its first", ONE, "filling and 49 or 57", "57", SERVER),
    ("everyday: nothing leaves the block", ONE, "filling and 49 or 57", "49", SERVER),
    ("everyday: the life is not prolonged", ONE, "and record + window <= mark", "", ["--test", "redis", "a_key_lives_as"]),
    ("everyday: ahead by the record that left", ONE, "struct.unpack('>I8', block) + window", "oldest + window", SERVER),
    ("ring: one too many", RING, "local age = C - L + m - 1", "local age = C - L + m - 2", SERVER),
    ("ring: gone a moment late", RING, "if at(mid) > gone then", "if at(mid) >= gone then", SERVER),
    ("ring: records run back", RING, "last = math.max(eff + hold, last)", "last = eff + hold", SERVER),
    ("ring: the clock runs back", RING, "eff = math.max(eff, clock)", "clock = eff", SERVER),
    ("ring: the clock is the newest record", RING, "eff = math.max(eff, clock)", "eff = math.max(eff, last)", SERVER),
    ("ring: recorded at the grant", RING, "math.max(eff + hold, last)", "math.max(eff, last)", SERVER),
    ("ring: shrinks with the limit", RING, "math.max(C, L)  ", "L  ", SERVER),
    ("ring: grows and forgets", RING, "records(C - held, C) or ''", "'' or ''", SERVER),
    ("ring: the second part is not written", RING, "if here < #records then", "if false then", SERVER),
    ("ring: the second part is not read", RING, "return here < count and part .. get(0, count - here) or part", "return part", SERVER),
    ("ring: a full block goes to the next slots", RING, "put((n - rest - size / 8) % C,", "put((n - rest) % C,", SERVER),
    ("ring: the new block begins a record late", RING, "get(n % C, BLOCK - rest)", "get((n + 1) % C, BLOCK - rest)", SERVER),
    ("ring: what is in the block alone is overlooked", RING, "C <= BLOCK and math.min(n, C) or n % BLOCK end", "0 end", SERVER),
    ("ring: the search ends a record early", RING, "lo, early = to, at(to - 1)", "lo, early = to - 1, at(to - 1)", SERVER),
    ("ring: the search trusts its guess", RING, "hi, late = from, at(from)", "lo, hi = from, from", ["--test", "redis", "differential::ring_of_thousands"]),
    ("ring: lets go of records that it may not write again", RING, "if slots > 0 then call('SETRANGE', key, SLOTS + slots * 8 - 1, '\\0') end\n", "", ["--test", "redis", "failures::a_ring_that"]),
    ("zset: one too many", ZSET, "local rank = m - L - 1", "local rank = m - L - 2", SERVER),
    ("zset: members begin again", ZSET, "sequence = struct.unpack('>I8', newest[1])", "sequence = 0", SERVER),
    ("zset: the clock runs back", ZSET, "eff = math.max(eff, tonumber(newest[2]))", "", SERVER),
    ("counter: the oldest bucket left out", BUCKETS, "if age <= k then", "if age < k then", SERVER),
    ("counter: the clock runs back", BUCKETS, "eff = math.max(eff, clock)", "", SERVER),
    ("two-window: weighs too little", TWO, "return whole - math.floor(room * whole / before)", "return whole - math.ceil(room * whole / before)", SERVER),
    ("gcra: interval rounded down", GCRA, "return m * Ius + math.floor(fr / PARTS), fr % PARTS", "return m * Ius, 0", SERVER),
    ("gcra: a shorter window is a clock that ran back", GCRA, "math.max(sus, span)", "sus", SERVER),
    ("gcra: a clock far back finds room", GCRA, "local back = now < first", "local back = false", SERVER),
    ("several: charged one by one", DECIDE, "if granted > 0 and mode ~= PEEK then", "if mode ~= PEEK then", SERVER),
    ("several: the first limit decides", DECIDE, "if w > longest then", "if i == 1 then", SERVER),
    ("a peek takes", DECIDE, "if granted > 0 and mode ~= PEEK then", "if granted > 0 then", SERVER),
    ("parts: one too few", DECIDE, "local hi = cost - 1", "local hi = cost - 2", SERVER),
]


def main() -> int:
    wanted = sys.argv[1:]
    if wanted[:1] == ["--tenth"]:
        chosen = MUTANTS[int(wanted[1]) % 10::10]
    else:
        chosen = [m for m in MUTANTS if not wanted or any(w in m[0] for w in wanted)]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "redis-mutants"
    lived = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("target", ".git"))
        for name, file, before, after, tests in chosen:
            path = copy / file
            text = path.read_text()
            if text.count(before) != 1:
                print(f"{name}: stands {text.count(before)} times in {file}")
                lived.append(name)
                continue
            path.write_text(text.replace(before, after))
            test = ["cargo", "test", "--quiet", "-p", "tollgate-redis", "--target-dir", str(target), *tests[:-1], "--", tests[-1]]
            done = subprocess.run(test, cwd=copy, capture_output=True, text=True)
            path.write_text(text)
            built = "running " in done.stdout
            verdict = "does not build" if not built else "lives" if done.returncode == 0 else "dies"
            print(f"{name}: {verdict}", flush=True)
            if verdict != "dies":
                lived.append(name)
    print(f"{len(chosen) - len(lived)} of {len(chosen)} die")
    return 1 if lived else 0


sys.exit(main())

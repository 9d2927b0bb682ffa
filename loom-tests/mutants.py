#!/usr/bin/env python3
"""Breaks the core in one place at a time and expects the models to notice.

    loom-tests/mutants.py [NAME..]      all mutants, or those whose name contains one of these; without a name, random
                                        schedules have to find those of DEEP as well
    loom-tests/mutants.py --third N     every third of them, from the N-th
    loom-tests/mutants.py --deep [NAME..]   random schedules alone: those of DEEP, or those named
    loom-tests/mutants.py --record ..   any of these, and the rows of README.md's table are replaced by what happened
    loom-tests/mutants.py --lines [TEXT..]  deletes one statement after the other from what admits in the log and the
                                        counter (those that contain one of the texts), and expects the compiler, a
                                        model or a test to notice, or the line to stand in lines.txt with a reason

Each mutant is applied to a copy of the tree below the target folder, built, and run until a model breaks: first the model
that README.md says has killed it. A text that is not found exactly once is an error: mutants follow the code. `TESTED`
mutants are for a unit test of the core, since no model can notice: a call may be judged in the bucket of any rival, and
that a refusal stores nothing is a property of one thread. `LIVES` says why nothing can.

There are as many copies as cores, and the work that took longest by README.md's table is begun first, so that they end at
once. What needs a build of its own is done in one copy: unit tests in the first, random schedules in the last.
"""

import os, pathlib, re, resource, shutil, signal, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mutants"

DIES, TESTED, VOID = "dies", "tested", "void"


class LIVES(str):
    """Why no model can notice."""


# Seconds of a processor, beyond which a test or a model is taken for one that does not end.
SECONDS_MAX = 300


UNIT, COSTS, RING, LOG = (f"src/algorithm/log/{f}.rs" for f in ("unit", "costs", "ring", "mod"))
WINDOW, GCRA, FIXED, TWO, ONE_WORD, PACING = (
    f"src/algorithm/{f}.rs" for f in ("window", "gcra", "fixed", "two_window", "one_word", "pacing"))
REBASED, LOCK, DOOR = "src/clock/rebased.rs", "src/sync/lock.rs", "src/sync/modelled.rs"
SHARDS, LIVE, RATES = "src/shard/mod.rs", "src/live.rs", "src/algorithm/gcra/live.rs"
LAYERS, WAITING, PLACES = "src/layers.rs", "src/waiting.rs", "src/shared/table.rs"
PUBLISHED, FOLLOWED = "src/shared/publication.rs", "src/shared/rules.rs"
KEYED, SHARD, ROWS = "src/keyed/mod.rs", "src/keyed/shard.rs", "src/keyed/places.rs"


# (name, models that are run, file, [(text, replacement)], what happens)
MUTANTS = [
    # --- the log, unit form
    ("unit: check, then store", "log unit", UNIT, [(
        "slot.compare_exchange(end.oldest, at.slot(end.pos), Release, Relaxed).ok()?; // O5, L1",
        "slot.store(at.slot(end.pos), Release);")], DIES),
    ("unit: the hint is stored, not swapped", "log unit", UNIT, [(
        "log.state.head().head.compare_exchange(end.hint, Head(end.pos.0), Release, Relaxed).ok()?; // O4",
        "log.state.head().head.store(Head(end.pos.0), Release);")], DIES),
    ("unit: a lost hint is not noticed", "log unit", UNIT, [(
        "log.state.head().head.compare_exchange(end.hint, Head(end.pos.0), Release, Relaxed).ok()?; // O4",
        "let _ = log.state.head().head.compare_exchange(end.hint, Head(end.pos.0), Release, Relaxed);")], DIES),
    ("unit: the hint is not moved", "log unit", UNIT, [(
        "log.state.head().head.compare_exchange(end.hint, Head(end.pos.0), Release, Relaxed).ok()?; // O4", "")], DIES),
    ("unit: a claim without re-read of the head", "log unit", UNIT, [(
        "} else if !unmoved(log, end) {\n        return None;\n    }", "}")], DIES),
    ("unit: a refusal without re-read of the head", "log unit", UNIT, [(
        "claim(log, end, at) } else { unmoved(log, end).then_some(false) } // L2", "claim(log, end, at) } else { Some(false) }")],
     DIES),
    ("unit: a glance refuses without re-read of the head", "log unit", UNIT, [(
        "return unmoved(log, end).then_some(false); // L2", "return Some(false);")], DIES),
    ("unit: a glance admits whatever other rules say", "log unit", UNIT, [(
        "if now.as_nanos() >= log.glance_until {", "if !now.in_range() {")], DIES),
    ("unit: refuse when the head moved", "log unit", UNIT, [(
        "} else if !unmoved(log, end) {\n        return None;\n    }",
        "} else if !unmoved(log, end) {\n        return Some(false);\n    }")], DIES),
    ("unit: refuse on contention", "log unit", UNIT, [(
        "slot.compare_exchange(end.oldest, at.slot(end.pos), Release, Relaxed).ok()?; // O5, L1\n    Some(true)",
        "Some(slot.compare_exchange(end.oldest, at.slot(end.pos), Release, Relaxed).is_ok())")], DIES),
    ("unit: parity ignored", "log unit", UNIT, [(
        "if slot.is_of(Pos(hint.0)) {", "if slot.0 >> 63 != 0 {")], DIES),
    ("unit: no walk from the hint", "log unit", UNIT, [(
        "if slot.is_of(Pos(hint.0)) {", "if false {")], DIES),
    ("unit: no clamp to the newest time", "log unit", UNIT, [(
        "let at = newest.max(Stamp::new(now)); // I3", "let at = Stamp::new(now);")], DIES),
    ("unit: a glance does not clamp to the newest time", "log unit", UNIT, [(
        "!newest.is_of(Pos(hint.0)) || newest.is_after(now)", "!newest.is_of(Pos(hint.0))")], DIES),
    ("unit: another rule's look-back", "log unit", UNIT, [(
        "log.ring.back(end.pos, rule.limit)", "log.ring.back(end.pos, log.look_backs()[0].limit)")], DIES),
    ("unit: the end slot read again", "log unit", UNIT, [(
        "let slot = if rule.limit == log.ring.cap {", "let slot = if false {")], DIES),
    ("unit: the first rule only", "log unit", UNIT, [(
        "log.look_backs().iter().all(|rule| {", "log.look_backs()[..1].iter().all(|rule| {")], DIES),
    ("unit: a slot keeps its parity", "log unit", RING, [(
        "Slot(self.0 ^ (pos.0 & 1))", "Slot(self.0)")], DIES),
    ("unit: a look believes a later lap", "log unit", RING, [(
        "let slot = if slot.is_of(pos) { slot } else { self.unfilled?.slot(pos) };",
        "let slot = if slot.is_of(pos) { slot } else { self.unfilled.map_or(slot, |newest| newest.slot(pos)) };")], DIES),
    ("log: a look does not read the head again", "log", RING, [(
        "(self.block.head().head.load(Relaxed) == self.seen).then_some(answer) // O3", "Some(answer)")], DIES),
    ("log: boundary a tick early", "log", RING, [(
        "let past = rule.window.as_nanos() << 1;", "let past = (rule.window.as_nanos() - 1) << 1;")], DIES),
    ("log: boundary a tick late", "log", RING, [(
        "let past = rule.window.as_nanos() << 1;", "let past = (rule.window.as_nanos() + 1) << 1;")], DIES),
    ("log: < for <= at the boundary of a glance", "log", RING, [(
        "slot.lacks_to(at).cast_signed() >= self.past_plain", "slot.lacks_to(at).cast_signed() > self.past_plain")], DIES),
    ("log: < for <= at the boundary", "log", RING, [(
        "age.0 >= self.past", "age.0 > self.past")], DIES),
    # --- the log, form with costs
    ("costs: check, then store", "log costs", COSTS, [(
        "log.state.head().head.compare_exchange(newest.seen, next, Release, Relaxed).ok()?; // O4, L1",
        "log.state.head().head.store(next, crate::sync::Release);")], DIES),
    ("costs: refuse on contention", "log costs", COSTS, [(
        "log.state.head().head.compare_exchange(newest.seen, next, Release, Relaxed).ok()?; // O4, L1\n    Some(true)",
        "Some(log.state.head().head.compare_exchange(newest.seen, next, Release, Relaxed).is_ok())")], DIES),
    ("costs: no fill", "log costs", COSTS, [(
        "    let (last, index) = log.ring.before(end, log.ring.index(end));\n",
        "    if true { return Some(true); }\n    let (last, index) = log.ring.before(end, log.ring.index(end));\n")],
     DIES),
    ("costs: fill without re-check", "log costs", COSTS, [(
        "    if !unmoved(log, newest) {\n        return None;\n    }\n    let filled", "    let filled")], DIES),
    ("costs: fill stores", "log costs", COSTS, [(
        "let _ = log.ring.slot_at(log.state, index).compare_exchange(old, filled, Release, Relaxed); // O5",
        "let _ = old; log.ring.slot_at(log.state, index).store(filled, crate::sync::Release);")], DIES),
    ("costs: fill from the end down", "log costs", COSTS, [(
        "    for _ in 0..unfilled {\n        let old = load(first);",
        "    first = log.ring.back(newest.end(log), 1);\n    for _ in 0..unfilled {\n        let old = load(first);"), (
        "        first = log.ring.ahead(first, 1);\n", "        first = log.ring.back(first, 1);\n")], DIES),
    ("costs: fill the last slot only", "log costs", COSTS, [(
        "        return Some(false); // O2\n", "        let _ = before; // O2\n")], DIES),
    ("costs: a gap of two is not filled", "log costs", COSTS, [(
        "if done { Some(()) } else { fill_many(log, &newest) })?;", "{ let _ = (done, fill_many as fn(_, _) -> _); Some(()) })?;")],
     DIES),
    ("costs: an unfilled slot is believed", "log costs", COSTS, [(
        "let slot = if slot.is_of(pos) { slot } else { Stamp::new(newest.time).slot(pos) };", "")], DIES),
    ("costs: a glance believes an unfilled slot", "log costs", COSTS, [(
        "cost > log.ceiling || !slot.is_of(pos) {", "cost > log.ceiling {\n        let _ = pos;")], DIES),
    ("costs: a glance admits whatever other rules say", "log costs", COSTS, [(
        "if now.as_nanos() >= log.glance_until ||", "if !now.in_range() ||")], DIES),
    ("costs: a glance for one permit", "log costs", COSTS, [(
        "log.ring.index(Pos(newest.seen.0)), cost - 1);", "log.ring.index(Pos(newest.seen.0)), 0);")], DIES),
    ("costs: a ring of one slot", "log costs", LOG, [("let unit = cap.min(self.max_cost) <= 1;", "let unit = self.max_cost <= 1;")], DIES),
    ("costs: a glance refuses without re-check", "log costs", COSTS, [(
        "    if !log.full.is_past_at(slot, now) {\n        return unmoved(log, &newest).then_some(false); // L2",
        "    if !log.full.is_past_at(slot, now) {\n        return Some(false);")], DIES),
    ("costs: an attempt refuses without re-check", "log costs", COSTS, [(
        "fits(log, &newest, rule, cost, at)) {\n        return unmoved(log, &newest).then_some(false); // L2",
        "fits(log, &newest, rule, cost, at)) {\n        return Some(false);")], DIES),
    ("costs: no clamp to the newest time", "log costs", COSTS, [(
        "    let at = now.max(newest.time);\n    if !log", "    let at = now;\n    if !log")], DIES),
    ("costs: a glance does not clamp to the newest time", "log costs", COSTS, [(
        "    if now < newest.time {\n", "    if false {\n")], DIES),
    ("costs: cost ignored in the look-back", "log costs", COSTS, [(
        "let pos = log.ring.back(newest.end(log), rule.limit + 1 - cost);",
        "let _ = cost; let pos = log.ring.back(newest.end(log), rule.limit);")], DIES),
    ("costs: the first rule only", "log costs", COSTS, [(
        "if !log.look_backs().iter().all(", "if !log.look_backs()[..1].iter().all(")], DIES),
    ("costs: proposal without check", "a_late_caller_proposes_nothing_over_the_base_in_use", COSTS, [(
        "        if unmoved(log, newest) {\n            let _ = word.compare_exchange(proposed,", "        if true {\n            let _ = word.compare_exchange(proposed,")], TESTED),
    ("costs: proposal stored", "log costs", COSTS, [(
        "let _ = word.compare_exchange(proposed, Base(base.wrapping_sub(sign)), Release, Relaxed); // O7",
        "word.store(Base(base.wrapping_sub(sign)), crate::sync::Release);")], DIES),
    ("costs: the base in use overwritten", "log costs", COSTS, [(
        "let bank = 1 - bank_of(newest.seen);", "let bank = bank_of(newest.seen);")], DIES),
    ("costs: one base for both banks", "log costs", COSTS, [(
        "log.state.head().bases[bank_of(seen)].load(Acquire)", "log.state.head().bases[0].load(Acquire)")], DIES),
    ("costs: no bank switch", "log costs", COSTS, [(
        "(passed <= log.span_mask && stays).then_some(", "true.then_some(")], DIES),
    ("costs: out of the bank", "log costs", COSTS, [(
        "(passed <= log.span_mask && stays).then_some(", "(passed <= log.span_mask).then_some(")], DIES),
    ("costs: a time beyond the span", "log costs", COSTS, [(
        "(passed <= log.span_mask && stays).then_some(", "stays.then_some(")], DIES),
    ("costs: an abandoned proposal is not passed", "log costs", COSTS, [(
        "    if past_base > log.span_mask {", "    if false {")], DIES),
    ("costs: switch below the proposed base", "log costs", COSTS, [(
        "let past_base = at.as_nanos().saturating_sub(base);", "let past_base = at.as_nanos().wrapping_sub(base) & log.span_mask;")], DIES),
    ("costs: pass below the proposed base", "log costs", COSTS, [(
        "let past_base = newest.time.as_nanos().saturating_sub(base);",
        "let past_base = newest.time.as_nanos().wrapping_sub(base) & log.span_mask;")], DIES),
    ("costs: a base that is never used taken for a proposal", "log costs", COSTS, [(
        "if base.cast_signed() <= counts.cast_signed() {", "if base <= counts {")], DIES),
    # --- the counter
    ("counter: check, then store", "counter", WINDOW, [(
        "state.compare_exchange(seen, Mark(next), Release, Relaxed).ok()?; // O3, L1",
        "state.store(Mark(next), crate::sync::Release);")], DIES),
    ("counter: a glance checks, then stores", "counter", WINDOW, [(
        "match state.compare_exchange(seen, next, Release, Relaxed) {",
        "state.store(next, crate::sync::Release);\n        match Ok::<Mark, Mark>(seen) {")], DIES),
    ("counter: refuse on contention", "counter", WINDOW, [(
        "state.compare_exchange(seen, Mark(next), Release, Relaxed).ok()?; // O3, L1\n        Some(Some(bucket))",
        "Some(state.compare_exchange(seen, Mark(next), Release, Relaxed).is_ok().then_some(bucket))")], DIES),
    ("counter: a glance refuses on contention", "counter", WINDOW, [(
        "Err(_) => Some(self.contend(now, cost)),", "Err(_) => Some(false),")], DIES),
    ("counter: no turn", "counter", WINDOW, [(
        "            self.state.head().compare_exchange(seen, turning, Release, Relaxed).ok()?; // O3\n            self.fill(turning, newest + 1);\n            seen = turning;\n",
        "            self.fill(turning, newest + 1);\n")], DIES),
    ("counter: the turn is stored", "counter", WINDOW, [(
        "self.state.head().compare_exchange(seen, turning, Release, Relaxed).ok()?; // O3",
        "self.state.head().store(turning, crate::sync::Release);")], DIES),
    ("counter: no start totals", "counter", WINDOW, [(
        "            self.fill(turning, newest + 1);\n", "")], DIES),
    ("counter: another's turn is not completed", "counter", WINDOW, [(
        "            self.fill(seen, self.first_unfilled(newest));\n", "            let _ = Self::first_unfilled;\n")], DIES),
    ("counter: another's turn is completed at its end only", "counter", WINDOW, [(
        "            self.fill(seen, self.first_unfilled(newest));\n",
        "            let _ = Self::first_unfilled;\n            self.fill(seen, newest);\n")], DIES),
    ("counter: start totals from the end down", "counter", WINDOW, [(
        "for passed in first.max(newest.saturating_sub(self.reach))..=newest {",
        "for passed in (first.max(newest.saturating_sub(self.reach))..=newest).rev() {")], DIES),
    ("counter: start total stored", "counter", WINDOW, [(
        "let _ = slot.compare_exchange(old, start, Release, Relaxed); // O4",
        "slot.store(start, crate::sync::Release);")], DIES),
    ("counter: start totals without their bucket's order", "counter", WINDOW, [(
        "if self.bucket(old) < passed {", "if self.bucket(old) != passed {")], DIES),
    ("counter: start totals by a maximum", "counter", WINDOW, [(
        "if self.bucket(old) < passed {", "if old.0 < start.0 {")], DIES),
    ("counter: a turning state takes for settled", "counter", WINDOW, [(
        "Mark((seen.0 & !self.split.flag()) - self.bucket(seen) + bucket)",
        "Mark(seen.0 - self.bucket(seen) + bucket)")], DIES),
    ("counter: an unfilled slot counts", "counter", WINDOW, [(
        "Less => Some(0), // I3: passed over, and not yet filled.",
        "Less => Some(self.split.rest(seen.0.wrapping_sub(slot.0 - self.bucket(slot)))),")], DIES),
    ("counter: a later bucket counts", "counter", WINDOW, [(
        "            Greater => None,\n", "            Greater => Some(self.split.rest(seen.0.wrapping_sub(slot.0))),\n")], DIES),
    ("counter: a later bucket refuses", "counter", WINDOW, [(
        "            Greater => None,\n", "            Greater => Some(u64::MAX),\n")], DIES),
    ("counter: a later start looked up", "counter", WINDOW, [(
        "            return Some(0); // Nothing was admitted since.\n", "")], DIES),
    ("counter: boundary a bucket early", "counter", WINDOW, [(
        "let start = bucket.saturating_sub(back);", "let start = (bucket + 1).saturating_sub(back);")], DIES),
    ("counter: boundary a bucket late", "counter", WINDOW, [(
        "let start = bucket.saturating_sub(back);", "let start = bucket.saturating_sub(back + 1);")], DIES),
    ("counter: a glance a bucket off", "counter", WINDOW, [(
        "self.split.pack(backs[0], rules.first().limit);", "self.split.pack(backs[0] - 1, rules.first().limit);"), (
        "bucket.overflowing_sub(self.backs[0]);", "bucket.overflowing_sub(self.backs[0] - 1);")], DIES),
    ("counter: a glance in the first window counts one less", "counter", WINDOW, [(
        "room_since(0, first)", "room_since(0, first.wrapping_add(self.split.in_place(1)))")], DIES),
    ("counter: a glance beyond its bucket", "counter", WINDOW, [(
        "if !self.split.ends_after(bucket, now) {", "if false {")], DIES),
    ("counter: a glance in a turn", "counter", WINDOW, [(
        "if !self.split.is_whole(room) {", "if !self.split.is_whole(room & !self.split.flag()) {")], DIES),
    ("counter: no clamp to the newest bucket", "counter", WINDOW, [(
        "        let bucket = self.split.newest(self.bucket(seen), now);\n        if !self",
        "        let bucket = self.split.index_of(now);\n        if !self")], DIES),
    ("counter: another rule's look-back", "counter", WINDOW, [(
        "self.rules.iter().zip(&self.backs)", "self.rules.iter().zip(core::iter::repeat(&self.backs[0]))")], DIES),
    ("counter: the first rule only", "counter", WINDOW, [(
        "let is_alone = rules.len() == 1 && config.ceiling > 0;", "let is_alone = config.ceiling > 0;")], DIES),
    ("counter: the last start total left out", "counter", WINDOW, [(
        "for passed in first.max(newest.saturating_sub(self.reach))..=newest {",
        "for passed in first.max(newest.saturating_sub(self.reach))..newest {")], DIES),
    ("counter: the first start total left out", "counter", WINDOW, [(
        "for passed in first.max(newest.saturating_sub(self.reach))..=newest {",
        "for passed in first.max((newest + 1).saturating_sub(self.reach))..=newest {")], DIES),
    ("counter: a ring one slot short", "counter", WINDOW, [(
        "let len = (reach + 1).checked_next_power_of_two()", "let len = reach.checked_next_power_of_two()")], DIES),
    ("counter: a refusal turns", "a_refusal_stores_nothing", WINDOW, [(
        "        if !self.fits(seen, bucket, cost)? {\n            return Some(None);\n        }\n",
        "        if !self.fits(seen, bucket, cost)? {\n            if bucket > self.bucket(seen) {\n                self.settle(seen, bucket)?;\n            }\n            return Some(None);\n        }\n")],
     TESTED),
    # --- one word
    ("gcra: check, then store", "gcra", GCRA, [(
        "match self.state.head().compare_exchange_weak(seen, next, Release, Relaxed) {",
        "self.state.head().store(next, Release);\n            match Ok::<Tat, Tat>(seen) {")], DIES),
    ("gcra: < for <= at the boundary", "gcra", GCRA, [("(self.0 <= clock + room)", "(self.0 < clock + room)")], DIES),
    ("gcra: a tick early", "gcra", GCRA, [("(self.0 <= clock + room)", "(self.0 <= clock + room + 1)")], DIES),
    ("gcra: idle time is credited", "gcra", GCRA, [("self.0.max(clock) + charge", "self.0 + charge")], DIES),
    ("gcra: judged once, swapped for ever", "gcra", GCRA, [(
        "while let Some(next) = seen.charged(charge, clock, room) {",
        "seen.charged(charge, clock, room)?;\n        while let Some(next) = Some(Tat(seen.0.max(clock) + charge)) {")], DIES),
    ("pacing: give back without check", "pacing", GCRA, [(
        "self.state.head().compare_exchange(step.after, step.before, Relaxed, Relaxed).is_ok() // O4, L1",
        "{ self.state.head().store(step.before, Relaxed); step.after.0 > 0 }")], DIES),
    ("pacing: give back from any place", "pacing", GCRA, [(
        "self.state.head().compare_exchange(step.after, step.before, Relaxed, Relaxed).is_ok() // O4, L1",
        "{ let now = self.state.head().load(Relaxed); self.state.head().compare_exchange(now, step.before, Relaxed, Relaxed).is_ok() && step.after.0 > 0 }")],
     DIES),
    ("pacing: the start of the word after", "pacing", GCRA, [(
        "start: now.max(self.rate.nanos(before.0))", "start: now.max(self.rate.nanos(self.state.head().load(Relaxed).0 - charge))")],
     DIES),
    ("fixed: check, then store", "fixed", ONE_WORD, [(
        "self.state.head().compare_exchange(seen, next, Release, Acquire).map(|_| true)",
        "self.state.head().store(next, Release);\n        Ok(true)")], DIES),
    ("fixed: an older call rolls back", "fixed", FIXED, [(
        "let index = self.split.newest(seen, now);", "let index = self.split.index_of(now);")], DIES),
    ("fixed: one over", "fixed", FIXED, [("(cost <= room).then(", "(cost <= room + 1).then(")], DIES),
    ("two windows: check, then store", "two windows", ONE_WORD, [(
        "self.state.head().compare_exchange(seen, next, Release, Acquire).map(|_| true)",
        "self.state.head().store(next, Release);\n        Ok(true)")], DIES),
    ("two windows: the window before forgotten", "two windows", TWO, [(
        "1 => (rest & self.half_max, 0),", "1 => (0, 0),")], DIES),
    ("two windows: a tick late", "two windows", TWO, [(
        "wide(seen.prev, seen.left) <= wide(room, seen.width.get())", "wide(seen.prev, seen.left) < wide(room, seen.width.get())")], DIES),
    # --- the clock
    ("rebased: newest stored", "rebased", REBASED, [(
        "match self.newest.compare_exchange_weak(from, to, Release, Relaxed) {",
        "self.newest.store(to, Release);\n            match Ok::<u64, u64>(from) {")], DIES),
    ("rebased: gap closed twice", "rebased", REBASED, [(
        "if self.offset.compare_exchange(from, to, Release, Relaxed).is_ok() {",
        "let _ = from;\n            self.offset.store(self.offset.load(Relaxed) + to - from, Release);\n            if true {")], DIES),
    ("rebased: the source read before the newest time", "rebased", REBASED, [(
        "let offset = self.offset(); // O1\n", "let offset = self.offset(); // O1\n            let source = self.source.now();\n"), (
        "let time = self.source.now() + offset;", "let time = source + offset;")], DIES),
    # --- the lock
    ("lock: check, then set", "compact", LOCK, [(
        "self.held.compare_exchange_weak(0, 1, Acquire, Relaxed).is_ok() // O1, O3",
        "self.held.load(Acquire) == 0 && { self.held.store(1, Relaxed); true }")], DIES),
    ("lock: not waited for", "compact", LOCK, [("while !self.try_hold() {", "if !self.try_hold() {")], DIES),
    # --- what it guards, judged before the lock is given back and recorded after
    ("compact: judged under one lock, recorded under another", "compact", "src/algorithm/compact.rs", [(
        "        let live = |state: &State|",
        "        drop(state);\n        let mut state = self.state.lock();\n        let live = |state: &State|")], DIES),
    ("wheel: judged under one lock, recorded under another", "wheel", "src/algorithm/wheel.rs", [(
        "        state.newest = at;\n        state.turn_to(tick);",
        "        drop(state);\n        let mut state = self.state.lock();\n        state.newest = at;\n        state.turn_to(tick);")], DIES),
    ("sampled: judged under one lock, recorded under another", "sampled", "src/algorithm/sampled.rs", [(
        "        let entries = match self.pick {",
        "        drop(state);\n        let mut state = self.state.lock();\n        let entries = match self.pick {")], DIES),
    # --- shards
    ("shards: refused at different times", "shards", SHARDS, [(
        "                return Err(seen_at); // I3\n", "                let _ = Self::publish; // I3\n")], DIES),
    ("shards: only the last shard looked at again", "shards", SHARDS, [(
        "for shard in 0..len {\n            let (seen_at", "for shard in len - 1..len {\n            let (seen_at")], DIES),
    ("shards: until a nanosecond late", "shards", SHARDS, [(
        "Self(until.min(Nanos::MAX).as_nanos() << 2", "Self((until.min(Nanos::MAX).as_nanos() + 1) << 2")], DIES),
    ("shards: until the last shard is free", "shards", SHARDS, [(
        "free = free.min(passes);", "free = if shard == 0 { passes } else { free.max(passes) };")], DIES),
    ("shards: until is not taken back", "shards", SHARDS, [(
        "compare_exchange(seen, Until(0), Relaxed, Relaxed)", "compare_exchange(seen, seen, Relaxed, Relaxed)")], DIES),
    ("shards: until whatever the limits are", "live shards", SHARDS, [(
        " < self.0 && self.0 & LOW == generation", " < self.0 && generation <= LOW")], DIES),
    # --- live change
    ("live: not read again", "live", LIVE, [(
        "let unmoved = self.generation.load(Relaxed) == generation; // O3", "let unmoved = true;")], DIES),
    ("live: the copy in use is written", "live", LIVE, [(
        "let generation = self.generation.load(Relaxed).wrapping_add(1); // O3\n        for (word, &value) in self.copy(generation)",
        "let generation = self.generation.load(Relaxed).wrapping_add(1); // O3\n        for (word, &value) in self.copy(generation - 1)")], DIES),
    ("live: published before it is written", "live", LIVE, [(
        "let generation = self.generation.load(Relaxed).wrapping_add(1); // O3\n        for",
        "let generation = self.generation.load(Relaxed).wrapping_add(1); // O3\n        self.generation.store(generation, Release);\n        for")], DIES),
    ("live gcra: what has drained is forgotten", "live gcra", RATES, [("self.clock(since), // I1", "self.drained,")], DIES),
    ("live gcra: the clock is not read at the change", "live gcra", RATES, [(
        "            since,\n", "            since: self.since,\n")], DIES),
    ("live gcra: the speed stays", "live gcra", RATES, [("{ self.speed_of(rule) },", "{ self.speed },")], DIES),
    ("live gcra: the burst stays", "live gcra", RATES, [("            span,\n            ceiling", "            span: self.span,\n            ceiling")],
     DIES),
    # --- the door
    ("the door hands out real atomics", "", DOOR, [(
        "use tollgate_check::sync::{AtomicU64, UnsafeCell, spin_loop};",
        "use core::sync::atomic::AtomicU64; use tollgate_check::sync::{UnsafeCell, spin_loop};")], VOID),
    # --- layers
    ("layers: no look", "layers", LAYERS, [(
        "self.0[..N - 1].iter().all(|layer| layer.fits_at(cost, now))\n            && ", "")], DIES),
    ("layers: from the outside in", "layers", LAYERS, [(
        "self.0.iter().rev().all(", "self.0.iter().all(")], DIES),
    ("layers: the outer ones are not taken from", "layers", LAYERS, [(
        "self.0.iter().rev().all(", "self.0.iter().rev().take(1).all(")], DIES),
    # --- many keys
    ("keyed: a key in use leaves", "keyed", SHARD, [("|spot| self.states.is_idle(spot, now)", "|_| true")], DIES),
    ("keyed: a key in use makes room", "keyed", SHARD, [("if wait == Nanos::ZERO {", "if wait < Nanos::MAX {")], DIES),
    ("keyed: a row that was passed does not count it", "keyed", ROWS, [(
        "at.tags[PASSED].saturating_add(1); // I2", "at.tags[PASSED];")], DIES),
    ("keyed: a word in place of a new one", "keyed", ROWS, [(
        "let (_, beside) = at.places[column as usize].write((key, W::default())); // I3",
        "let (_, beside) = at.places[column as usize].write((key, W::default()));\n"
        "    if let Some(word) = beside.word() { word.store(15, crate::sync::Relaxed); }")], DIES),
    ("keyed: a late caller finds a new key", "keyed", SHARD, [("now.max(self.floor)", "now")], DIES),
    ("keyed: an older time is no reason to stay", "keyed", "src/decision.rs", [(
        "return look.at() - now + wait;", "return wait;")],
     LIVES("a newest admission later than now is in its window still, so that the wait is not zero")),
    ("keyed: what left is not forgotten", "keyed", SHARD, [(
        "self.states.clear(self.places.at(place)?.1); // I2", "")], DIES),
    ("keyed: the lock is given back before the state is asked", "keyed", KEYED, [(
        "let answer = ask(&*shard.states, spot, now); // L1\n        let gone",
        "let place = shard.places.find(hash, key).map(|(place, _)| place).expect(\"found\");\n        let _ = spot;\n"
        "        drop(shard);\n        shard = table.shard(hash);\n"
        "        let spot = shard.places.at(place).map_or(SHARED, |(_, spot)| spot);\n"
        "        let answer = ask(&*shard.states, spot, now);\n        let gone")], DIES),
    ("keyed: who is kept is forgiven", "keyed", KEYED, [(
        ".filter(|(_, key, spot)| !keep(", ".filter(|(_, key, spot)| keep(")], DIES),
    ("keyed: forgiven by half", "keyed", KEYED, [(
        "forgiven.into_iter().map(", "forgiven.into_iter().skip(1).map(")], DIES),
    ("keyed: nobody is removed", "keyed", KEYED, [(
        ".and_then(|place| shard.free(place, hash));", ".filter(|_| false).and_then(|place| shard.free(place, hash));")], DIES),
    ("keyed: the lock is given back before a key is made", "keyed", KEYED, [(
        "let gone = match shard.room(now,",
        "drop(shard);\n        let mut shard = table.shard(hash);\n        let gone = match shard.room(now,")],
     DIES),
    # --- seats for those who wait
    ("waiting: check, then sit", "waiting", WAITING, [(
        "match self.seats.compare_exchange(taken, taken + 1, Relaxed, Relaxed) {",
        "self.seats.store(taken + 1, Relaxed);\n            match Ok::<u64, u64>(taken) {"), (
        "taken, taken - 1, ", "taken, taken.wrapping_sub(1), ")], DIES),
    ("waiting: a seat too many", "waiting", WAITING, [(
        "if taken >= self.waiters_max {", "if taken > self.waiters_max {")], DIES),
    ("waiting: who sleeps again sits down again", "waiting", WAITING, [(
        "        if seat.is_none() {\n            *seat = Some(self.sit()?);\n        }\n",
        "        *seat = Some(self.sit()?);\n")], DIES),
    ("waiting: a seat is kept", "waiting", WAITING, [(
        "self.0.compare_exchange(taken, taken - 1, Relaxed, Relaxed)",
        "self.0.compare_exchange(taken, taken, Relaxed, Relaxed)")], DIES),
    ("waiting: whoever stands up stores", "waiting", WAITING, [(
        "while let Err(other) = self.0.compare_exchange(taken, taken - 1, Relaxed, Relaxed) {",
        "self.0.store(taken - 1, Relaxed);\n        while let Err(other) = Ok::<u64, u64>(taken) {")], DIES),
    # --- keys in memory that processes share, and how they take places over
    ("places: the holder does not notice a claim", "shared places", PLACES, [(
        "let next = if seen.claims(hold.way) { seen.cancelled() } else { seen };", "let next = seen;")], DIES),
    ("places: the holder does not notice that it has lost its place", "shared places", PLACES, [(
        "            if !self.has(hold, seen) {\n                return false;\n            }\n", "")], DIES),
    ("places: a refusal from a place that was lost", "shared places", PLACES, [(
        "turn == hold.turn || self.has(hold, turn)", "turn == hold.turn || self.has(hold, turn) || true")], DIES),
    ("places: an admission is not kept", "shared places", PLACES, [(
        "if if is_admitted { self.keep(hold) } else { self.is_kept(hold) } {",
        "if if is_admitted { self.is_kept(hold) } else { self.is_kept(hold) } {")], DIES),
    ("places: a key in use loses its place", "shared places", PLACES, [(
        "let next = if is_free { claim.decided() } else { claim.cancelled() };",
        "let _ = is_free;\n        let next = claim.decided();")], DIES),
    ("places: idle at the time of the call, not at the floor", "shared places", PLACES, [(
        "        if !is_nobodys {\n            self.raise_floor(now);\n        }\n", "        let _ = is_nobodys;\n")], DIES),
    ("places: judged before the floor", "shared places", PLACES, [(
        "let (answer, is_admitted) = ask(hold.way, now.max(self.floor()));",
        "let (answer, is_admitted) = ask(hold.way, now);")], DIES),
    ("places: a turn begins before the last one is written", "shared places", PLACES, [(
        "        let turn = self.turn.load(Acquire); // O1\n        self.fill(turn);\n        turn\n",
        "        self.turn.load(Acquire) // O1\n")], DIES),
    ("places: a place is written without a look at the turn", "a_late_caller_writes_no_way", PLACES, [(
        "if old != key && self.turn.load(Acquire) == turn {", "if old != key {")], TESTED),
    ("places: a place is stored", "shared places", PLACES, [(
        "let _ = way.compare_exchange(old, key, Release, Relaxed); // O5", "way.store(key, Release);")], DIES),
    ("places: a claim is stored", "shared places", PLACES, [(
        "if self.turn.compare_exchange(turn, claim, AcqRel, Relaxed).is_ok() {\n            self.finish(claim, ways); // O2",
        "self.turn.store(claim, Release);\n        if true {\n            self.finish(claim, ways);")], DIES),
    ("places: a decision is stored", "shared places", PLACES, [(
        "if self.turn.compare_exchange(claim, next, Release, Relaxed).is_ok() {\n            self.fill(next); // O3, L1",
        "self.turn.store(next, Release);\n        if true {\n            self.fill(next);")], DIES),
    ("places: another's claim is taken for a turn", "shared places", PLACES, [(
        "        if turn.is_claim() {\n            self.finish(turn, ways);\n            return Ok(());\n        }\n", "")],
     LIVES("a claim that is written over is as good as cancelled: its caller starts over. Without it two callers could write "
           "over each other's for ever, and that takes more preemptions than any bound")),
    ("places: turns are not counted", "no_turn_comes_twice", PLACES, [(
        "CLAIM | self.0.wrapping_add(1) & SEQ)", "CLAIM | self.0 & SEQ)")], TESTED),
    # --- rules in memory that processes share
    ("published: the newest is not compared", "shared value", PUBLISHED, [(
        "is_written && self.state.compare_exchange(own, own.published(), Release, Relaxed).is_ok() // O5, L1",
        "is_written && { let now = self.state.load(Relaxed); let (tag, newest) = (own.newest(), now.newest());\n"
        "            self.state.compare_exchange(now, State::new(tag, newest.max(tag)), Release, Relaxed).is_ok() }")], DIES),
    ("published: stored, not swapped", "shared value", PUBLISHED, [(
        "is_written && self.state.compare_exchange(own, own.published(), Release, Relaxed).is_ok() // O5, L1",
        "if is_written { self.state.store(own.published(), Release); }\n        is_written")], DIES),
    ("published: a change is begun by a store", "shared value", PUBLISHED, [(
        "if self.state.compare_exchange(seen, own, Relaxed, Relaxed).is_err() {",
        "self.state.store(own, Relaxed);\n        if false {")], DIES),
    ("published: a late change does not look whether it is the newest", "shared value", PUBLISHED, [(
        "if self.state.load(Relaxed) != own {", "if false {")], DIES),
    ("published: a late change looks before it reads the word", "shared value", PUBLISHED, [(
        "            let old = word.load(Acquire); // O2\n            if self.state.load(Relaxed) != own {\n"
        "                return false; // O3\n            }\n",
        "            if self.state.load(Relaxed) != own {\n                return false;\n            }\n"
        "            let old = word.load(Acquire);\n")], DIES),
    ("published: a word is stored", "shared value", PUBLISHED, [(
        "if word.compare_exchange(old, Half::new(own.newest(), half), Release, Relaxed).is_ok() {",
        "let _ = old;\n            word.store(Half::new(own.newest(), half), Release);\n            if true {")], DIES),
    ("published: tags are not looked at", "shared value", PUBLISHED, [(
        "if seen.tag() != tag {", "if false {")], DIES),
    ("published: the slot in force is written", "shared value", PUBLISHED, [(
        "if tag != 0 && slot_of(tag) != slot_of(self.present()) {", "if tag != 0 {")], DIES),
    ("published: a tag of 0", "shared value", PUBLISHED, [(
        "if tag != 0 && slot_of(tag) != slot_of(self.present()) {", "if slot_of(tag) != slot_of(self.present()) {")], DIES),
    ("published: in force before it is written", "shared value", PUBLISHED, [(
        "        let slot = self.slots[slot_of(own.newest())].iter().zip(halves);",
        "        let _ = self.state.compare_exchange(own, own.published(), Release, Relaxed);\n"
        "        let own = own.published();\n        let slot = self.slots[slot_of(own.newest())].iter().zip(halves);")], DIES),
    ("published: a half is missing", "shared value", PUBLISHED, [(
        "slot.take(1 + halves[0] as usize)", "slot.take(halves[0] as usize)")], DIES),
    ("followed: the copy is not replaced by what it was derived from", "shared rules", FOLLOWED, [(
        "self.copy.try_replace(&Tagged { tag: tag.into(), settings });",
        "self.copy.try_replace(&Tagged { tag: tag.into(), settings: copy.settings });")], DIES),
    ("followed: a copy has a later tag than its rules", "shared rules", FOLLOWED, [(
        "&Tagged { tag: tag.into(), settings }", "&Tagged { tag: present.present().into(), settings }")], DIES),
    ("followed: the tag is not looked at", "shared rules", FOLLOWED, [(
        "if copy.tag == u64::from(tag) {", "if copy.tag == u64::from(tag) || true {")], DIES),
    # --- permits given back
    ("given back: to any bucket", "given back", WINDOW, [(
        "self.bucket(seen) == bucket && self.bucket(start) == bucket && !self.is_turning(seen);", "true;")], DIES),
    ("given back: stored, not swapped", "given back", WINDOW, [(
        "if self.state.head().compare_exchange(seen, next, Release, Relaxed).is_ok() {",
        "self.state.head().store(next, crate::sync::Release);\n            if true {")], DIES),
    ("given back: more than was charged", "given back", GCRA, [(
        "Self(self.0.saturating_sub(charge).max(clock))", "Self(clock)")], DIES),
]


# What shows that the random schedules of `ci/deep.sh` find what is rare.
DEEP = ["counter: no turn", "costs: fill without re-check", "unit: a look believes a later lap",
        "shards: refused at different times", "live: not read again", "layers: from the outside in",
        "keyed: a late caller finds a new key", "keyed: the lock is given back before the state is asked"]


class DoesNotEnd(Exception):
    pass


class DoesNotBuild(Exception):
    pass


class Done:
    """A command that has ended: what it said, and how many seconds of a processor it and all that it started took."""

    def __init__(self, command, seconds_max=None, **options):
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds_max, seconds_max))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=limit if seconds_max else None, **options)
            _, status, used = os.wait4(process.pid, 0)
            self.code = process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = used.ru_utime + used.ru_stime
            said = lambda file: file.seek(0) or file.read().decode()
            self.out, self.err = said(out), said(err)

    def last_line(self):
        said = self.out if self.code == 0 else self.err
        return (said.strip().splitlines() or [""])[-1].removeprefix("tollgate-models: ")

    def failed_test(self):
        failed = re.search(r"^failures:\n    (\S+)", self.out, re.M)
        other = "a test that does not end" if "signal: " in self.err else "a test that does not build"
        return f"the test {failed[1]}" if failed else other


class Copy:
    """A copy of the tree, with a target folder beside it."""

    def __init__(self, number):
        self.number, self.seconds = number, 0.0
        self.tree, self.target = TARGET / f"{number}/tree", TARGET / f"{number}/target"
        shutil.rmtree(self.tree, ignore_errors=True)
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        for name in filter(None, names):
            source, copy = ROOT / name, self.tree / name
            if source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)  # As new: what an interrupted run has built is stale.

    def done(self, command, **options):
        done = Done(command, **options)
        self.seconds += done.seconds
        return done

    def bounded(self, command, **options):
        """Each process that it starts has so many seconds of a processor, however busy the machine is."""
        done = self.done(command, seconds_max=SECONDS_MAX, **options)
        if done.code in (-signal.SIGXCPU, -signal.SIGKILL):
            raise DoesNotEnd
        return done

    def build(self, deep=False):
        flags = "--cfg tollgate_loom -Awarnings" + (" --cfg tollgate_shuttle" if deep else "")
        env = dict(os.environ, CARGO_TARGET_DIR=str(self.target), RUSTFLAGS=flags)
        command = ["cargo", "build", "--quiet", "--profile", "model", "-p", "tollgate-models"]
        return self.done(command, cwd=self.tree, env=env)

    def start_as(self, other):
        """With what the other has built."""
        shutil.rmtree(self.target / "model", ignore_errors=True)
        shutil.copytree(other.target / "model", self.target / "model", symlinks=True)

    def models(self, models, *options, command=("kill",)):
        return self.bounded([self.target / "model/tollgate-models", *command, "--processes", "1", *options,
                             *filter(None, [models])])

    def test(self, name=None):
        """The core's own tests, without the model: one unit test, or those that the statements are asked of."""
        env = dict(os.environ, CARGO_TARGET_DIR=str(self.target / "test"), RUSTFLAGS="-Awarnings",
                   CARGO_PROFILE_DEV_OPT_LEVEL="1", CARGO_PROFILE_DEV_DEBUG="0")
        # The quick ones first, to build above all.
        parts = (["--lib", name],) if name else (
            ["--lib", "--test", "config", "--test", "live", "--test", "statistics"],
            ["--test", "contract", "--", "--skip", "threads::"])
        for part in parts:
            done = self.bounded(["cargo", "test", "--quiet", "-p", "tollgate", "--features", "shared", *part],
                                cwd=self.tree, env=env)
            if done.code != 0:
                break
        return done

    def run(self, models, *options, deep=False):
        """What the models say of the tree as it stands."""
        built = self.build(deep)
        if built.code != 0:
            raise DoesNotBuild(built.err)
        command = ["deep", "--seed", "1", "--runs", "1000"] if deep else ["kill"]
        done = self.models(models, *options, command=command)
        return "survives" if deep and done.code == 0 else done.last_line()


def apply(changes, text, name):
    for old, new in changes:
        if text.count(old) != 1:
            sys.exit(f"mutants.py: \"{name}\": found {text.count(old)} times, not once:\n{old}")
        text = text.replace(old, new)
    return text


def copies_for(count, deep=False):
    copies = [Copy(i) for i in range(min(len(os.sched_getaffinity(0)), count))]
    if (built := copies[0].build(deep)).code != 0:
        sys.exit(f"mutants.py: void, without a mutant it does not build\n{built.err}")
    for other in copies[1:]:
        other.start_as(copies[0])
    return copies


def each(copies, items, work, place=lambda item: None):
    """Does `work` on every item, each in the next free copy of the tree, or in the one that is its place."""
    left, lock, results = list(items), threading.Lock(), []

    def next_for(copy):
        with lock:
            item = next((item for item in left if place(item) in (None, copy)), None)
            if item is not None:
                left.remove(item)
            return item

    def worker(copy):
        while (item := next_for(copy)) is not None:
            results.append(work(copy, item))

    threads = [threading.Thread(target=worker, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(results) != len(items):
        sys.exit("mutants.py: a worker ended before its work")
    return results


# What admits: for each file the models that run it; up to its unit tests, or to the impls named in OTHER_IMPLS.
EPOCH, DECISION = "src/algorithm/epoch.rs", "src/decision.rs"
ADMITS = {UNIT: "log unit", COSTS: "log costs", RING: "log", LOG: "log", WINDOW: "counter", EPOCH: "counter",
          DECISION: "log"}
ONLY_FUNCTIONS = {DECISION: {"try_acquire", "take_if_ordinary"}}
OTHER_FUNCTIONS = {
    "builder", "width", "bytes", "clear", "look", "look_from", "rules", "max_cost",
    "accepts", "is_by", "holds", "indices", "lap_before",  # of states from elsewhere
    "elapsed", "start_of",  # of other algorithms, and of looks
}
OTHER_IMPLS = re.compile(r"^// === impl (\w*Look|\w+Builder) ===|^#\[cfg\((all\()?test\b", re.M)


def statements(file):
    """Each statement of what admits: its function, and its lines (from, to). Comments, attributes and hints are none."""
    text = (ROOT / file).read_text()
    end = OTHER_IMPLS.search(text)
    lines = text[:end.start() if end else len(text)].split("\n")
    code = [re.sub(r"//.*|'.'", "", line).rstrip() for line in lines]
    depth = lambda i: sum((c in "([{") - (c in ")]}") for c in code[i])
    function, body, found = None, 0, []
    for i, line in enumerate(code):
        start = re.match(r" *(?:pub(?:\(\w+\))? )?fn (\w+)", line)
        if start and body <= 0:
            function, body = start[1], 0
            opened = False
        if function is None:
            continue
        before, body = body, body + depth(i)
        if not opened:
            opened = body > 0 and line.endswith("{")
            continue
        if body <= 0:
            function = None
            continue
        is_of_these = function in ONLY_FUNCTIONS.get(file, {function}) - OTHER_FUNCTIONS
        if not is_of_these or line.strip() in ("", "cold_path();") or line.strip()[0] in ")]}#":
            continue
        last, level = i, depth(i)
        while level > 0 or not (code[last].endswith((";", "}", ",", "{")) or code[last + 1].strip().startswith("}")):
            last += 1
            level += depth(last)
        found.append((function, i, last))
    return found


def lines_main(texts):
    listed = {}
    for line in (ROOT / "loom-tests/lines.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" | ")
            listed[name.strip()] = reason.strip()
    work = []
    for file in ADMITS:
        lines, seen = (ROOT / file).read_text().split("\n"), {}
        for function, first, last in statements(file):
            words = re.sub(r" *//.*", "", lines[first]).strip()
            name = f"{file.removeprefix('src/').removeprefix('algorithm/')} {function}: {words}"
            seen[name] = seen.get(name, 0) + 1
            name += f" #{seen[name]}" if seen[name] > 1 else ""
            if any(part in name for part in texts or [""]):
                work.append((name, file, lines[:first] + lines[last + 1:]))
    start = time.time()
    copies = copies_for(len(work))

    def notices(copy, file):
        if copy.build().code != 0:
            return "the compiler"
        for options in (["--bound", "1"], ["test"], []):
            try:
                done = copy.test() if options == ["test"] else copy.models(ADMITS[file], *options)
            except DoesNotEnd:
                return "does not end"
            if options == ["test"] and done.code != 0:
                return done.failed_test()
            if options != ["test"] and done.code == 0:
                return done.last_line().removeprefix("killed by ")
        return None

    def delete(copy, item):
        name, file, kept = item
        path = copy.tree / file
        text = path.read_text()
        path.write_text("\n".join(kept))
        killer = notices(copy, file)
        path.write_text(text)
        right = (killer is None) == (name in listed)
        told = killer or f"nothing: {listed.get(name, 'NOT LISTED')}"
        print(f"| `{name}` | {told if right else told + ' NOT AS LISTED' * (name in listed)} |", flush=True)
        return right, killer

    print("| without | what notices |\n|---|---|", flush=True)
    results = each(copies, work, delete)
    gone = [] if texts else [name for name in listed if all(name != known for known, _, _ in work)]
    count = lambda test: sum(1 for _, killer in results if test(killer))
    faults = [right for right, _ in results].count(False)
    print(f"{len(work)} statements: {count(lambda k: k == 'the compiler')} do not compile without, "
          f"{count(lambda k: k and k != 'the compiler')} are noticed by models or tests, {count(lambda k: not k)} by nothing; "
          f"{faults} not as lines.txt says; {time.time() - start:.0f} s")
    if gone:
        print(f"mutants.py: listed, but no such statement: {gone}")
    sys.exit(faults > 0 or bool(gone))


README = ROOT / "loom-tests/README.md"
BY_CHANCE = ", by random schedules"


class Table:
    """README.md's table of mutants."""

    ROW = re.compile(r"^\| (.+?) \| (.+) \| (\d+) s \|\n", re.M)

    def __init__(self):
        self.text = README.read_text()
        self.start = self.text.index("\n", self.text.index("|---", self.text.index("\n## Mutants\n"))) + 1
        self.end = self.text.index("\n\n", self.start) + 1
        rows = self.ROW.findall(self.text[self.start:self.end])
        self.rows = {name: (happened, int(seconds)) for name, happened, seconds in rows}

    def killer(self, name):
        """The model that has killed it."""
        killed = re.fullmatch("killed by (.+): [^:]+", self.rows.get(name, ("", 0))[0])
        return ["--first", killed[1]] if killed else []

    def seconds(self, name):
        return self.rows[name][1] if name in self.rows else SECONDS_MAX

    def write(self, rows):
        rows = {**self.rows, **rows}
        table = "".join("| {} | {} | {} s |\n".format(name, *rows[name]) for name, _ in ALL if name in rows)
        README.write_text(self.text[:self.start] + table + self.text[self.end:])


# Each row of the table: its name, and the mutant.
ALL = [(m[0], m) for m in MUTANTS] + [(m[0] + BY_CHANCE, m) for m in MUTANTS if m[0] in DEEP]


def selected(args):
    if args[:1] == ["--third"]:
        thirds = [m for i, m in enumerate(MUTANTS) if i % 3 == int(args[1]) or m[4] == VOID]
        return [(m[0], m) for m in thirds]
    if args[:1] == ["--deep"]:
        return [(m[0] + BY_CHANCE, m) for m in MUTANTS if any(part in m[0] for part in args[1:] or DEEP)]
    return [(name, m) for name, m in ALL if not args or BY_CHANCE not in name and any(part in name for part in args)]


def main():
    if "--lines" in sys.argv[1:]:
        lines_main([arg for arg in sys.argv[1:] if arg != "--lines"])
    args, table, rows = [arg for arg in sys.argv[1:] if arg != "--record"], Table(), {}
    wanted = selected(args)
    for name, _, file, changes, _ in MUTANTS:
        apply(changes, (ROOT / file).read_text(), name)
    if len(ALL) != len(MUTANTS) + len(DEEP) or not wanted:
        sys.exit("mutants.py: no mutant has such a name, or one in DEEP")
    start = time.time()
    is_deep = lambda job: BY_CHANCE in job[0]
    copies = copies_for(len(wanted), all(map(is_deep, wanted)))
    # Without a mutant all models pass, or the run is void.
    whole = [("no mutant" + (BY_CHANCE if deep else ""), None) for deep in set(map(is_deep, wanted))]
    print("| mutant | what happens | processor time |\n|---|---|---:|", flush=True)

    def place(job):
        _, mutant = job
        return copies[-1] if is_deep(job) else copies[0] if mutant and mutant[4] == TESTED else None

    def order(job):
        return place(job) is None, -table.seconds(job[0])

    def kill(copy, job):
        name, mutant = job
        deep, before = is_deep(job), copy.seconds
        _, models, file, changes, expected = mutant or ("", "", DOOR, [], LIVES("as it must"))
        path = copy.tree / file
        text = path.read_text()
        if mutant:
            path.write_text(apply(changes, text, name))
        try:
            if expected == TESTED:
                done = copy.test(models)
                said = f"killed by {done.failed_test()}" if done.code != 0 else "survives"
            else:
                options = table.killer(name) if mutant and not deep else [] if deep else ["--bound", "1"]
                said = copy.run(models, *options, deep=deep)
        except DoesNotEnd:
            said = "killed by what does not end"
        except DoesNotBuild as why:
            said = f"does not build\n{why}"
        if mutant:
            path.write_text(text)
        if isinstance(expected, LIVES):
            right = said == "survives"
            said += f": {expected}" * right
        else:
            right = "no verdict" in said if expected == VOID else said.startswith("killed by")
        seconds = round(copy.seconds - before)
        fault = "NOT AS EXPECTED" if mutant else "VOID"
        print(f"| {name} | {said if right else f'{fault}: {said}'} | {seconds} s |", flush=True)
        if right and mutant:
            rows[name] = (said, seconds)
        return right

    faults = each(copies, sorted(whole + wanted, key=order), kill, place).count(False)
    total = sum(copy.seconds for copy in copies)
    busy = ", ".join(f"{copy.seconds:.0f}" for copy in copies)
    print(f"{len(wanted)} rows, {faults} not as expected; {time.time() - start:.0f} s, {total:.0f} s of processors ({busy})")
    if "--record" in sys.argv[1:]:
        Table().write(rows)
    elif unlike := {name for name, _ in ALL} ^ set(table.rows):
        print(f"mutants.py: in README.md's table or among the mutants, not both (--record writes it): {sorted(unlike)}")
        faults += not args or args[0] == "--third"
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()

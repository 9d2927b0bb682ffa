//! One call, killed after each of its instructions, or stopped there; two calls in every order of their instructions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tollgate::{
    Config, Decision, Fixed, Gcra, Log, LogConfig, TwoWindow, WhenFull, Window, WindowBuilder, WindowConfig,
    shared::{Region, RegionBuilder, Time},
};

use crate::{
    trace::{Mailbox, Path, Victim},
    world::{Call, Subject, World},
};

const WINDOW: u64 = 100;
const LIMIT: u64 = 5;
/// Far beyond what fits into the head of a log, and beyond any window.
const FAR: u64 = 1 << 60;
/// Instructions that a call may take beside a dead one, at most.
const SURVIVOR_MAX: usize = 4_000;

/// One history before a call, and the call.
struct Scenario {
    name: &'static str,
    before: Vec<Call>,
    call: Call,
    /// What else the answers afterwards speak of.
    others: Vec<Subject>,
}

/// How a kind of scenarios is run.
trait Run {
    fn run<C: Config>(&mut self, world: &World<C>, kind: &str, scenario: &Scenario);
}

fn take(cost: u64, now: u64) -> Call {
    Call::Take { cost, now }
}

fn key(key: u64, cost: u64, now: u64) -> Call {
    Call::Key { key, cost, now }
}

fn change(limit: u64, window: u64, now: u64) -> Call {
    Call::Change { limit, window, now }
}

/// Fourteen keys, which are all places of the one bucket.
fn full(now: u64) -> Vec<Call> {
    (1..=14).map(|n| key(n, 1, now)).collect()
}

fn scenarios() -> Vec<Scenario> {
    let limiter =
        |name, before: &[Call], call| Scenario { name, before: before.to_vec(), call, others: vec![] };
    let keyed = |name, before: Vec<Call>, call, others: &[u64]| {
        let others = others.iter().map(|&key| Some(key)).collect();
        Scenario { name, before, call, others }
    };
    vec![
        limiter("first use", &[], take(1, 1_000)),
        limiter("first use, cost n", &[], take(3, 1_000)),
        limiter("admit", &[take(1, 1_000), take(1, 1_020)], take(1, 1_030)),
        limiter("admit, cost n", &[take(2, 1_000)], take(3, 1_030)),
        limiter("refuse", &[take(5, 1_000)], take(1, 1_030)),
        limiter("refuse, cost n", &[take(3, 1_000)], take(3, 1_030)),
        limiter("roll", &[take(2, 1_000), take(3, 1_040)], take(2, 1_120)),
        limiter("far jump", &[take(5, 1_000)], take(1, FAR)),
        limiter("far jump, cost n", &[take(5, 1_000)], take(4, FAR)),
        limiter("older time", &[take(2, 1_000)], take(1, 930)),
        keyed("key: first use", vec![], key(1, 2, 1_000), &[2]),
        keyed("key: admit", vec![key(1, 2, 1_000)], key(1, 1, 1_010), &[2]),
        keyed("key: refuse", vec![key(1, 5, 1_000)], key(1, 1, 1_010), &[2]),
        keyed("key: take over", full(1_000), key(20, 2, 1_120), &[1, 2]),
        keyed("key: no room", full(1_000), key(20, 1, 1_010), &[1]),
    ]
}

/// Of regions whose rules may change: changes, and calls that are the first to notice one.
fn changes() -> Vec<Scenario> {
    let scenario = |name, before: &[Call], call, others: &[u64]| {
        let others = others.iter().map(|&key| Some(key)).collect();
        Scenario { name, before: before.to_vec(), call, others }
    };
    let some = [take(3, 1_000), key(1, 4, 1_000)];
    let once = [take(3, 1_000), key(1, 2, 1_000), change(4, WINDOW, 1_000)];
    let twice = [take(3, 1_000), key(1, 2, 1_000), change(2, WINDOW, 1_000), change(4, WINDOW, 1_000)];
    vec![
        scenario("change: first use", &[], change(2, WINDOW, 1_000), &[1]),
        scenario("change: lowered", &some, change(2, WINDOW, 1_010), &[1, 2]),
        scenario("change: raised", &some, change(LIMIT + 1, WINDOW, 1_010), &[1, 2]),
        scenario("change: a longer window", &some, change(4, 2 * WINDOW, 1_090), &[1]),
        scenario("change: switched off", &some, change(0, WINDOW, 1_010), &[1]),
        scenario("change: the second", &once, change(LIMIT, WINDOW, 1_010), &[1]),
        scenario("change: the third", &twice, change(LIMIT, WINDOW, 1_010), &[1]),
        scenario("change: noticed, admit", &once, take(1, 1_010), &[1]),
        scenario("change: noticed, refuse", &twice, take(2, 1_010), &[1]),
        scenario("change: noticed by a key", &twice, key(1, 2, 1_010), &[2]),
    ]
}

fn builder<C: Config>(config: C) -> RegionBuilder<C> {
    Region::builder(config).limiters(1).keys(7).time(Time::Caller).when_full(WhenFull::Refuse)
}

fn each(run: &mut impl Run) {
    let window = Duration::from_nanos(WINDOW);
    let log = Log::builder(LIMIT, window);
    of(builder(log.config().expect("valid")), "log", scenarios(), run);
    of(builder(log.max_cost(1).config().expect("valid")), "log of single permits", scenarios(), run);
    of(builder(counter().config().expect("valid")), "counter", scenarios(), run);
    of(builder(Fixed::builder(LIMIT, window).config().expect("valid")), "fixed", scenarios(), run);
    of(builder(TwoWindow::builder(LIMIT, window).config().expect("valid")), "two-window", scenarios(), run);
    of(builder(Gcra::builder(LIMIT, window).config().expect("valid")), "gcra", scenarios(), run);
    of(live_log(), "live log", changes(), run);
    of(live_counter(), "live counter", changes(), run);
}

fn counter() -> WindowBuilder {
    Window::builder(LIMIT, Duration::from_nanos(WINDOW)).buckets(5)
}

fn live_log() -> RegionBuilder<LogConfig> {
    let log = Log::builder(LIMIT, Duration::from_nanos(WINDOW)).capacity(LIMIT + 3);
    builder(log.config().expect("valid")).live()
}

fn live_counter() -> RegionBuilder<WindowConfig> {
    let counter = counter().window_max(Duration::from_nanos(2 * WINDOW));
    builder(counter.config().expect("valid")).live()
}

fn of<C: Config>(builder: RegionBuilder<C>, kind: &str, scenarios: Vec<Scenario>, run: &mut impl Run) {
    let world = World::new(builder);
    let zeros = world.bytes();
    for scenario in scenarios {
        world.restore(&zeros);
        for &call in &scenario.before {
            // A cost above what this kind takes is refused, which is a history as well.
            world.take(call);
        }
        run.run(&world, kind, &scenario);
    }
}

impl Scenario {
    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = vec![self.call.subject()];
        subjects.extend(&self.others);
        subjects
    }
}

/// A process that is about to make a call. Always by the same instructions.
#[inline(never)]
fn caller<C: Config>(world: &World<C>, mailbox: Mailbox, call: Call) -> Victim {
    Victim::new(mailbox, || world.take(call).into())
}

/// The instructions of a call on this region, which stays as it is.
fn path<C: Config>(world: &World<C>, mailbox: Mailbox, call: Call) -> Path {
    let start = world.bytes();
    let victim = caller(world, mailbox, call);
    let path = victim.path();
    victim.finish();
    world.restore(&start);
    path
}

/// Every so many instructions, from another one each day.
#[derive(Clone, Copy)]
struct Sample {
    first: usize,
    stride: usize,
}

impl Sample {
    const ALL: Self = Self { first: 0, stride: 1 };

    fn of_today(stride: usize) -> Self {
        let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
        Self { first: days as usize % stride, stride }
    }

    /// Those of a path of so many.
    fn of(self, steps: usize) -> impl Iterator<Item = usize> {
        (self.first.min(steps)..=steps).step_by(self.stride)
    }
}

impl Default for Sample {
    fn default() -> Self {
        Self::ALL
    }
}

// === killed ===

#[derive(Default)]
struct Killed {
    kills: u64,
    states: u64,
    survivor_max: usize,
    scenarios: u64,
}

impl Run for Killed {
    /// After each kill every answer is one of "before" or one of "after".
    fn run<C: Config>(&mut self, world: &World<C>, kind: &str, scenario: &Scenario) {
        let mailbox = Mailbox::new();
        let start = world.bytes();
        let answers = || world.answers(&scenario.subjects(), scenario.call.now(), WINDOW);
        let before = answers();
        world.restore(&start);
        world.take(scenario.call);
        let after = answers();
        world.restore(&start);
        let path = path(world, mailbox, scenario.call);
        let mut last = Vec::new();
        for steps in 0..=path.steps() {
            world.restore(&start);
            let victim = caller(world, mailbox, scenario.call);
            let is_under_way = victim.follow(&path, steps);
            assert_eq!(is_under_way, steps < path.steps(), "{}: the same each time", scenario.name);
            victim.kill();
            self.kills += 1;
            let left = world.bytes();
            if left == last {
                continue;
            }
            self.states += 1;
            drop(world.attached());
            let got = answers();
            let here = format!("{kind}, {}, killed after {steps} instructions", scenario.name);
            assert!(got == before || got == after, "{here}: {got:#?}\nbefore {before:#?}\nafter {after:#?}");

            world.restore(&left);
            let survivor = caller(world, mailbox, scenario.call);
            let own = survivor.path().steps();
            survivor.finish();
            assert!(own < SURVIVOR_MAX, "{here}: a survivor took {own} instructions");
            self.survivor_max = self.survivor_max.max(own);
            last = left;
        }
        self.scenarios += 1;
    }
}

pub(crate) fn kill_at_every_instruction() -> String {
    let mut killed = Killed::default();
    each(&mut killed);
    let Killed { kills, states, survivor_max, scenarios } = killed;
    assert!(states > 2 * scenarios, "{states} states: nothing was written");
    format!(
        "{scenarios} calls killed at every instruction: {kills} kills, {states} states left, each answered as before the call \
         or after it; a survivor took {survivor_max} instructions at most"
    )
}

// === stopped ===

#[derive(Default)]
struct Stopped {
    stops: u64,
    /// Permits that a window may hold.
    most: u64,
    sample: Sample,
}

impl Run for Stopped {
    /// The victim goes on when others have been round the ring and all places have changed hands: all answers are as if it
    /// had called before them, or after.
    fn run<C: Config>(&mut self, world: &World<C>, kind: &str, scenario: &Scenario) {
        let mailbox = Mailbox::new();
        let (start, call) = (world.bytes(), scenario.call);
        // A bucket of tokens holds its burst, and what comes in meanwhile.
        self.most = if kind == "gcra" { 2 * LIMIT } else { LIMIT };
        let lap = || lap(call).into_iter().map(|call| world.check(call)).collect::<Vec<_>>();
        let end = call.now() + 2 * LIMIT * WINDOW;
        let rest = || world.answers(&scenario.subjects(), end, WINDOW);
        let victim_first = {
            let won = world.take(call);
            (won, lap(), rest())
        };
        world.restore(&start);
        let victim_last = {
            let answers = lap();
            (world.take(call), answers, rest())
        };
        world.restore(&start);
        let path = path(world, mailbox, call);
        for steps in self.sample.of(path.steps()) {
            world.restore(&start);
            let victim = caller(world, mailbox, call);
            victim.follow(&path, steps);
            let answers = lap();
            let is_admitted = victim.finish() == 1;
            let here = format!("{kind}, {}, stopped after {steps} instructions", scenario.name);
            self.stops += 1;
            if let Some(key) = call.subject() {
                // A place is had before the admission, so other keys may find no room that come before it.
                self.audit(&here, key, call, is_admitted, &answers);
                continue;
            }
            let got = (is_admitted, answers, rest());
            assert!(
                got == victim_first || got == victim_last,
                "{here}: {got:#?}\nfirst {victim_first:#?}\nlast {victim_last:#?}"
            );
        }
    }
}

impl Stopped {
    /// A key is not over in any window, if the victim was admitted before the lap or after it.
    fn audit(&self, here: &str, own: u64, call: Call, is_admitted: bool, answers: &[Decision]) {
        let mut admitted = Vec::new();
        for (asked, answer) in lap(call).into_iter().zip(answers) {
            if let (true, Ok(quota)) = (asked.subject() == Some(own), answer) {
                admitted.push((quota.at.as_nanos(), asked.cost()));
            }
        }
        let last = lap(call).last().map_or(0, |call| call.now());
        let is_kept = [call.now(), last].into_iter().any(|at| {
            let mut all = admitted.clone();
            all.extend(is_admitted.then_some((at, call.cost())));
            all.iter().all(|&(end, _)| {
                let recent = all.iter().filter(|&&(at, _)| at <= end && end - at < WINDOW);
                recent.map(|(_, cost)| cost).sum::<u64>() <= self.most
            })
        });
        assert!(is_kept, "{here}: admitted {is_admitted}, and {admitted:?}");
    }
}

/// Calls that go round a ring more than once, and through all places of a bucket, while time passes.
fn lap(call: Call) -> Vec<Call> {
    let of_step = |step| {
        let now = call.now() + step * WINDOW / 3;
        match call {
            Call::Take { .. } => vec![take(1, now), take(2, now)],
            Call::Change { .. } if step % 4 == 2 => vec![take(1, now), change(LIMIT - step % 3, WINDOW, now)],
            Call::Change { .. } => vec![take(1, now), take(2, now)],
            Call::Key { key: own, .. } => {
                let mut calls: Vec<_> = (0..14).map(|n| key(100 + n + 14 * (step % 2), 1, now)).collect();
                calls.extend([key(own, 1, now), key(own, 2, now)]);
                calls
            }
        }
    };
    (0..3 * LIMIT).flat_map(of_step).collect()
}

pub(crate) fn stop_at_every_instruction(all: bool) -> String {
    let sample = if all { Sample::ALL } else { Sample::of_today(10) };
    let mut stopped = Stopped { sample, ..Stopped::default() };
    each(&mut stopped);
    format!(
        "{} stops, resumed after a lap: all answers as if the victim had called before it or after",
        stopped.stops
    )
}

// === pairs ===

/// Two calls at once.
struct Pair {
    name: &'static str,
    before: Vec<Call>,
    calls: [Call; 2],
    /// Whether the outcome must be that of one of the two orders, and not only never more than the limit.
    is_exact: bool,
}

fn pairs() -> Vec<Pair> {
    let exact = |name, before: &[Call], calls| Pair { name, before: before.to_vec(), calls, is_exact: true };
    let strict = |name, before, calls| Pair { name, before, calls, is_exact: false };
    let idle_but_one = || {
        let mut calls = full(1_000);
        calls.extend((2..=14).map(|n| key(n, 1, 1_050)));
        calls
    };
    vec![
        exact("the last permit", &[take(4, 1_000)], [take(1, 1_010), take(1, 1_010)]),
        exact("all or nothing", &[take(1, 1_000)], [take(3, 1_010), take(2, 1_010)]),
        exact("both roll", &[take(5, 1_000)], [take(3, 1_200), take(3, 1_200)]),
        exact("first use", &[], [take(5, 1_000), take(1, 1_000)]),
        exact("a new key, twice", &[], [key(1, 3, 1_000), key(1, 3, 1_000)]),
        exact("two new keys", &[], [key(1, 5, 1_000), key(2, 5, 1_000)]),
        strict("two keys for one idle place", idle_but_one(), [key(30, 3, 1_120), key(31, 3, 1_120)]),
        strict(
            "a key comes back as its place is taken",
            idle_but_one(),
            [key(30, 3, 1_120), key(1, 3, 1_120)],
        ),
        strict("an idle place, one key twice", idle_but_one(), [key(30, 3, 1_120), key(30, 3, 1_120)]),
    ]
}

/// Of regions whose rules may change.
fn pairs_of_changes() -> Vec<Pair> {
    let pair = |name, before: &[Call], calls| Pair { name, before: before.to_vec(), calls, is_exact: true };
    let some = [take(3, 1_000), key(1, 4, 1_000)];
    let lowered = change(2, WINDOW, 1_010);
    vec![
        pair("two changes", &some, [lowered, change(4, WINDOW, 1_010)]),
        pair(
            "two changes, the second and third",
            &[change(3, WINDOW, 1_000)],
            [lowered, change(4, WINDOW, 1_010)],
        ),
        pair("a change and a call", &some, [lowered, take(1, 1_010)]),
        pair("a change and a key", &some, [lowered, key(1, 1, 1_010)]),
        pair(
            "two notice a change",
            &[take(1, 1_000), change(3, WINDOW, 1_000)],
            [take(2, 1_010), take(1, 1_010)],
        ),
    ]
}

struct Pairs {
    samples: [Sample; 2],
    schedules: u64,
}

impl Pairs {
    fn run<C: Config>(&mut self, world: &World<C>, kind: &str, pair: &Pair) {
        let mailboxes = [(); 2].map(|()| Mailbox::new());
        let start = world.bytes();
        let now = pair.calls[0].now();
        let mut subjects: Vec<Subject> = pair.calls.iter().map(|call| call.subject()).collect();
        subjects.dedup();
        let outcome = |won: [bool; 2]| (won, world.answers(&subjects, now, WINDOW));
        let orders = [[0, 1], [1, 0]].map(|order| {
            world.restore(&start);
            let mut won = [false; 2];
            order.into_iter().for_each(|n: usize| won[n] = world.take(pair.calls[n]));
            outcome(won)
        });
        world.restore(&start);
        let work = |n: usize| caller(world, mailboxes[n], pair.calls[n]);
        let first_path = path(world, mailboxes[0], pair.calls[0]);
        for first_steps in self.samples[0].of(first_path.steps()) {
            let first = || {
                world.restore(&start);
                let first = work(0);
                first.follow(&first_path, first_steps);
                first
            };
            let halted = first();
            let second_path = path(world, mailboxes[1], pair.calls[1]);
            halted.kill();
            for second_steps in self.samples[1].of(second_path.steps()) {
                let (first, second) = (first(), work(1));
                second.follow(&second_path, second_steps);
                let won = [first, second].map(|victim| victim.finish() == 1);
                self.schedules += 1;
                let here = format!("{kind}, {}, {first_steps} and {second_steps} instructions", pair.name);
                let (_, answers) = outcome(won);
                let is_one_of = orders.contains(&(won, answers));
                if pair.is_exact {
                    assert!(is_one_of, "{here}: {won:?}, in order {:?}", orders.each_ref().map(|it| it.0));
                    continue;
                }
                // A key charged with what it lost is on the strict side.
                let count = |won: [bool; 2]| won.into_iter().filter(|&won| won).count();
                let most = orders.iter().map(|&(won, _)| count(won)).max();
                let is_allowed = orders.iter().any(|&(other, _)| other == won);
                assert!(is_one_of || is_allowed || Some(count(won)) < most, "{here}: {won:?}");
            }
        }
    }
}

pub(crate) fn every_order_of_two(all: bool) -> String {
    let samples = if all { [Sample::ALL; 2] } else { [Sample::of_today(71), Sample::of_today(73)] };
    let mut run = Pairs { samples, schedules: 0 };
    fn of<C: Config>(builder: RegionBuilder<C>, kind: &str, pairs: Vec<Pair>, run: &mut Pairs) {
        let world = World::new(builder);
        let zeros = world.bytes();
        for pair in pairs {
            world.restore(&zeros);
            for &call in &pair.before {
                world.take(call);
            }
            run.run(&world, kind, &pair);
        }
    }
    let log = Log::builder(LIMIT, Duration::from_nanos(WINDOW)).config().expect("valid");
    of(builder(log), "log", pairs(), &mut run);
    of(builder(counter().config().expect("valid")), "counter", pairs(), &mut run);
    of(live_log(), "live log", pairs_of_changes(), &mut run);
    of(live_counter(), "live counter", pairs_of_changes(), &mut run);
    format!("{} schedules of two processes, each as one of the two orders", run.schedules)
}

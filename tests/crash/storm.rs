//! Processes that hammer one region, killed at random.

use std::{
    collections::BTreeMap,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::{Duration, Instant},
};

use tollgate::{
    Algorithm, Log, LogConfig, Nanos, Rule, WhenFull,
    shared::{Region, RegionBuilder},
};

use crate::trace::{fork, shared_words, wait};

const PROCESSES: usize = 3;
const LIMIT: u64 = 50;
/// What the limit is changed to.
const LIMITS: [u64; 3] = [20, 35, LIMIT];
const WINDOW: Duration = Duration::from_micros(500);
/// Keys, for which there are fewer places.
const KEYS: u64 = 40;
/// Admissions that are written down in a round.
const JOURNAL: u64 = 1 << 22;
/// Permits that the total of a round has.
const TOTAL: u64 = 1 << 24;

/// What happened.
#[derive(Default)]
struct Counts {
    kills: u64,
    recorded: u64,
    answered: u64,
    admitted: u64,
    keys: u64,
    changes: u64,
}

fn builder() -> RegionBuilder<LogConfig> {
    let log = Log::builder(LIMIT, WINDOW).config().expect("valid");
    Region::builder(log).limiters(1).keys(14).when_full(WhenFull::Refuse)
}

/// Kills for so long while nothing changes.
pub(crate) fn run(time: Duration) -> String {
    kill_for(time, builder())
}

/// Kills for so long, in changes of the limit among others: no window has more than the larger limit, and after the last change all
/// is as it says.
pub(crate) fn run_with_changes(time: Duration) -> String {
    kill_for(time, builder().live())
}

/// Kills for so long, in rounds after which what the processes wrote down is audited.
fn kill_for(time: Duration, builder: RegionBuilder<LogConfig>) -> String {
    let journal = shared_words(1 + 2 * JOURNAL as usize);
    let (start, mut seed, mut all) = (Instant::now(), 1, Counts::default());
    while start.elapsed() < time {
        let round = round(time.saturating_sub(start.elapsed()), journal, builder, &mut seed);
        all.kills += round.kills;
        all.recorded += round.recorded;
        all.answered += round.answered;
        all.admitted += round.admitted;
        all.keys = all.keys.max(round.keys);
        all.changes += round.changes;
    }
    let Counts { kills, recorded, answered, admitted, keys, changes } = all;
    assert!(admitted > kills / 10 && keys > KEYS / 2, "{admitted} admissions of {keys} keys: hardly any");
    format!(
        "{kills} kills of {PROCESSES} processes: {recorded} recorded, {answered} answered; {admitted} admissions of {keys} keys and a \
         limiter, {changes} changes of the limit; none over in any window"
    )
}

/// Kills for so long, or until all that can be written down is.
fn round(
    time: Duration,
    journal: &'static [AtomicU64],
    builder: RegionBuilder<LogConfig>,
    seed: &mut u64,
) -> Counts {
    // The total: a log that never lets go, asked at one time.
    let total = Region::builder(Log::builder(TOTAL, Duration::from_secs(1)).config().expect("valid"));
    let (total, _) = total.limiters(1).memfd("total").expect("memory");
    let (region, file) = builder.memfd("storm").expect("memory");
    // A count, then two words for each admission: whose and up to when, and from when. What `check` tells is of a moment after
    // the admission, so its time lies between that of the call and that.
    journal.iter().for_each(|word| word.store(0, Relaxed));

    let [answered, changes] = shared_words(2) else { unreachable!("two") };
    let is_live = region.set_rules(&[Rule::new(LIMIT, WINDOW)]).is_ok();

    let work = |seed: u64| {
        let (limiter, keys) = (region.limiter(0).expect("one"), region.keys().expect("some"));
        let total = total.limiter(0).expect("one");
        let mut random = seed | 1;
        let note = |subject: u64, from: Nanos, to: Nanos| {
            let place = 1 + 2 * journal[0].fetch_add(1, Relaxed) as usize;
            if let Some([whose, since]) = journal.get(place..place + 2) {
                since.store(from.as_nanos(), Relaxed);
                whose.store(subject << 56 | to.as_nanos(), Release);
            }
        };
        loop {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if is_live && random.is_multiple_of(8) {
                let limit = LIMITS[(random >> 32) as usize % LIMITS.len()];
                region.set_rules(&[Rule::new(limit, WINDOW)]).expect("one of these");
                changes.fetch_add(1, Relaxed);
            }
            let now = region.now().expect("the system's clock");
            let cost = 1 + random % 3;
            if random.is_multiple_of(4) {
                if let Ok(quota) = limiter.check_at(cost, now) {
                    (0..cost).for_each(|_| note(0, now, quota.at));
                }
            } else {
                let key = 1 + random / 8 % KEYS;
                if let Ok(quota) = keys.check_at(&key.to_le_bytes(), cost, now) {
                    (0..cost).for_each(|_| note(key, now, quota.at));
                }
            }
            if total.try_acquire_at(1, Nanos::ZERO) {
                answered.fetch_add(1, Relaxed);
            }
        }
    };

    let (start, mut kills) = (Instant::now(), 0);
    let mut next = || {
        *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let lives = Duration::from_nanos(10_000 + (*seed >> 32) % 400_000);
        fork(|| {
            die_after(lives);
            work(*seed >> 16);
        })
    };
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| next()).collect();
    for at in (0..PROCESSES).cycle() {
        assert!(libc::WIFSIGNALED(wait(processes[at])));
        kills += 1;
        processes[at] = next();
        let is_full = journal[0].load(Relaxed) > JOURNAL || answered.load(Relaxed) > TOTAL / 2;
        if is_full || start.elapsed() > time {
            break;
        }
    }
    processes.into_iter().for_each(|pid| assert!(libc::WIFSIGNALED(wait(pid))));
    kills += PROCESSES as u64;

    let recorded = total.limiter(0).expect("one").usage_at(0, Nanos::ZERO).expect("one rule");
    let answered = answered.load(Relaxed);
    assert!(answered <= recorded, "{answered} answers and {recorded} recorded");
    assert!(recorded <= answered + kills, "{recorded} recorded, {answered} answers and {kills} killed");
    let (admitted, keys) = audit(&journal[1..]);
    let region = builder.attach_fd(&file).expect("still a region");
    let changes = changes.load(Relaxed);
    assert_eq!(changes > kills / 10, is_live, "{changes} changes");
    for limit in LIMITS.into_iter().filter(|_| is_live) {
        region.set_rules(&[Rule::new(limit, WINDOW)]).expect("one of these");
        let later = region.now().expect("the system's clock") + Nanos::from_secs(limit);
        let takes = |limiter: &dyn Fn() -> bool| (0..2 * LIMIT).filter(|_| limiter()).count() as u64;
        assert_eq!(takes(&|| region.limiter(0).expect("one").try_acquire_at(1, later)), limit);
        assert_eq!(takes(&|| region.keys().expect("some").try_acquire_at(b"key", 1, later)), limit);
    }
    Counts { kills, recorded, answered, admitted, keys, changes }
}

/// Admissions, and how many keys had some. No one is over in any window.
fn audit(journal: &[AtomicU64]) -> (u64, u64) {
    let mut of = BTreeMap::<u64, Vec<(u64, u64)>>::new();
    let (pairs, _) = journal.as_chunks::<2>();
    // Where the first is 0, a process died before it was written.
    for [whose, since] in pairs {
        let whose = whose.load(Acquire);
        if whose != 0 {
            of.entry(whose >> 56).or_default().push((whose & ((1 << 56) - 1), since.load(Relaxed)));
        }
    }
    let window = WINDOW.as_nanos() as u64;
    let mut admitted = 0;
    for (subject, times) in &mut of {
        times.sort_unstable();
        admitted += times.len() as u64;
        for (n, &(end, _)) in times.iter().enumerate() {
            let recent = times[..=n].iter().rev().take_while(|(to, _)| end - to < window);
            let within = recent.filter(|&&(_, from)| end.saturating_sub(from) < window).count() as u64;
            assert!(within <= LIMIT, "subject {subject}: {within} permits in the window to {end}");
        }
    }
    (admitted, of.len() as u64 - u64::from(of.contains_key(&0)))
}

/// Has the system kill this process at whatever instruction it is by then.
fn die_after(span: Duration) {
    // SAFETY: contract of `sigevent`: plain numbers, of which zeros are one.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = libc::SIGKILL;
    let mut timer = std::ptr::null_mut();
    // SAFETY: contract of `timer_create`: both are live.
    let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
    assert_eq!(made, 0);
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let then = libc::timespec { tv_sec: 0, tv_nsec: span.subsec_nanos().into() };
    let once = libc::itimerspec { it_interval: never, it_value: then };
    // SAFETY: contract of `timer_settime`: a timer, and a span to be read.
    assert_eq!(unsafe { libc::timer_settime(timer, 0, &raw const once, std::ptr::null_mut()) }, 0);
}

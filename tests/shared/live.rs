//! Rules of a region that change while processes use it.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use tollgate::{
    Algorithm, Config, ConfigError, Fixed, Log, LogConfig, Nanos, Reason, Rule, TwoWindow, WhenFull, Window,
    shared::{ChangingConfig, Field, Region, RegionBuilder, SharedError, Time, inspect_fd},
};

use crate::memory::Shared;

const MINUTE: Duration = Duration::from_secs(60);

/// Where the rules in force lie.
const RULES: usize = 1024 / 8;

fn at(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

fn rule(limit: u64) -> Rule {
    Rule::new(limit, MINUTE)
}

fn log() -> RegionBuilder<LogConfig> {
    let log = Log::builder(3, MINUTE).capacity(10).config().unwrap();
    Region::builder(log).limiters(2).keys(7).time(Time::Caller).live()
}

/// A region as two processes have it.
fn twice<C: Config>(builder: RegionBuilder<C>) -> ([Region<C>; 2], OwnedFd) {
    let (first, file) = builder.memfd("live").unwrap();
    let second = builder.attach_fd(&file).unwrap();
    ([first, second], file)
}

fn takes<C: Config>(region: &Region<C>, now: Nanos) -> u64 {
    (0..100).filter(|_| region.limiter(0).unwrap().try_acquire_at(1, now)).count() as u64
}

fn key_takes<C: Config>(region: &Region<C>, now: Nanos) -> u64 {
    (0..100).filter(|_| region.keys().unwrap().try_acquire_at(b"key", 1, now)).count() as u64
}

#[test]
fn all_processes_follow() {
    let ([first, second], file) = twice(log());
    assert_eq!((takes(&first, at(0)), key_takes(&second, at(0))), (3, 3));
    assert_eq!((first.rules()[..].to_vec(), inspect_fd(&file).unwrap().is_live), (vec![rule(3)], true));

    first.set_rules(&[rule(5)]).unwrap();
    assert_eq!((takes(&second, at(1)), key_takes(&first, at(1))), (2, 2), "use so far is kept");
    assert_eq!(second.limiter(1).unwrap().rules()[..], [rule(5)]);

    second.set_rules(&[rule(0)]).unwrap();
    let denied = first.keys().unwrap().check_at(b"other", 1, at(61)).unwrap_err();
    assert_eq!(denied.reason, Reason::Never);
    assert_eq!(first.limiter(1).unwrap().check_at(1, at(61)).unwrap_err().reason, Reason::Never);

    let late = log().attach_fd(&file).unwrap();
    late.set_rules(&[rule(10), Rule::new(2, MINUTE / 60)]).unwrap();
    assert_eq!(first.rules()[..], [rule(10), Rule::new(2, MINUTE / 60)]);
    assert_eq!(inspect_fd(&file).unwrap().rules, first.rules());
    assert_eq!((takes(&first, at(61)), takes(&second, at(62)), takes(&late, at(63))), (2, 2, 2));
    assert_eq!(late.limiter(0).unwrap().usage_at(0, at(63)), Some(6), "what was taken at 0 and 1 has left");
    assert_eq!(first.config().rules(), [rule(3)], "those to begin with");
}

/// As `Live` answers one process, a live region answers two that take turns.
#[test]
fn every_kind_changes_as_live_does() {
    fn of<C: ChangingConfig, A: tollgate::ByRules>(config: C, algorithm: A, rules: &[Rule]) {
        let ([first, second], _file) = twice(Region::builder(config).limiters(1).time(Time::Caller).live());
        let live = tollgate::Live::new(algorithm).unwrap();
        let mut answers = 0;
        for n in 0..600_u64 {
            let (mine, theirs) = if n % 2 == 0 { (&first, &second) } else { (&second, &first) };
            if n % 7 == 0 {
                let rules = [rules[n as usize / 7 % rules.len()]];
                assert_eq!(mine.set_rules(&rules), live.set_rules(&rules).map_err(SharedError::Config));
                assert_eq!(theirs.rules(), live.rules());
            }
            let now = at(n * 5 + n % 3);
            let answer = mine.limiter(0).unwrap().check_at(1 + n % 3, now);
            assert_eq!(answer, live.check_at(1 + n % 3, now));
            assert_eq!(theirs.limiter(0).unwrap().usage_at(0, now), live.usage_at(0, now));
            answers += u64::from(answer.is_ok());
        }
        assert!((50..550).contains(&answers), "{answers} admitted: neither all nor none");
    }
    let (rules, half) = ([rule(9), rule(4), rule(0), rule(11), rule(6)], Rule::new(5, MINUTE / 2));
    let mut longer = rules.to_vec();
    longer.extend([half, rule(1 << 40), Rule::new(3, MINUTE / 7)]);
    let builder = Log::builder(9, MINUTE).capacity(11);
    of(builder.config().unwrap(), builder.build().unwrap(), &longer);
    let builder = Log::builder(9, MINUTE).capacity(11).max_cost(1);
    of(builder.config().unwrap(), builder.build().unwrap(), &longer);
    let builder = Window::builder(9, MINUTE).buckets(6);
    of(builder.config().unwrap(), builder.build().unwrap(), &longer);
    let builder = Fixed::builder(9, MINUTE);
    of(builder.config().unwrap(), builder.build().unwrap(), &longer);
    let builder = TwoWindow::builder(9, MINUTE);
    of(builder.config().unwrap(), builder.build().unwrap(), &longer);
}

#[test]
fn what_can_not_change_is_told() {
    let config = *log().memfd("frozen").unwrap().0.config();
    let frozen = Region::builder(config).limiters(2).keys(7).time(Time::Caller);
    let (region, file) = frozen.memfd("frozen").unwrap();
    assert_eq!(region.set_rules(&[rule(1)]), Err(SharedError::NotLive));
    assert!(!inspect_fd(&file).unwrap().is_live);
    let differs = |result: Result<Region<_>, _>| match result.map(|_| ()).unwrap_err() {
        SharedError::Differs { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(differs(log().attach_fd(&file)), Field::Live);
    let (region, file) = log().memfd("live").unwrap();
    assert_eq!(differs(frozen.attach_fd(&file)), Field::Live);

    let too_many = [rule(11), rule(3)];
    assert_eq!(
        region.set_rules(&too_many),
        Err(SharedError::Config(ConfigError::Limit { got: 11, max: 10 }))
    );
    let none = region.set_rules(&[]);
    assert_eq!(none, Err(SharedError::Config(ConfigError::Rules { got: 0, max: tollgate::RULES_MAX })));
    assert_eq!(region.rules()[..], [rule(3)], "as they were");

    // A counter needs half of its range for changes.
    let Err(ConfigError::Limit { max: most, .. }) = Window::builder(u64::MAX, MINUTE).config() else {
        panic!("no limit is that large")
    };
    let counter = Window::builder(most, MINUTE).config().unwrap();
    let half = Region::builder(counter).limiters(1).live();
    let error = half.memfd("half").map(|_| ()).unwrap_err();
    assert_eq!(half.bytes(), Err(error));
    assert!(matches!(error, SharedError::Config(ConfigError::Limit { got, .. }) if got == most), "{error}");
}

/// A state holds more than the limit after a lowering: whoever attaches then finds it sound.
#[test]
fn a_lowered_region_is_attached_to() {
    fn of<C: ChangingConfig>(config: C) {
        let builder = Region::builder(config).limiters(1).time(Time::Caller).live();
        let ([first, _], file) = twice(builder);
        assert_eq!(takes(&first, at(1)), 9);
        first.set_rules(&[rule(2)]).unwrap();
        let late = builder.attach_fd(&file).unwrap();
        assert_eq!((late.rules()[..].to_vec(), takes(&late, at(2))), (vec![rule(2)], 0));
        assert_eq!((takes(&late, at(200)), takes(&first, at(200))), (2, 0));
    }
    of(Log::builder(9, MINUTE).config().unwrap());
    of(Window::builder(9, MINUTE).config().unwrap());
    of(Fixed::builder(9, MINUTE).config().unwrap());
    of(TwoWindow::builder(9, MINUTE).config().unwrap());
}

/// And one of a raising, which holds more than the first limit.
#[test]
fn a_raised_region_is_attached_to() {
    fn of<C: ChangingConfig>(config: C) {
        let builder = Region::builder(config).limiters(1).keys(7).time(Time::Caller).live();
        let ([first, _], file) = twice(builder);
        first.set_rules(&[rule(9)]).unwrap();
        assert_eq!((takes(&first, at(1)), key_takes(&first, at(1))), (9, 9));
        let late = builder.attach_fd(&file).unwrap();
        assert_eq!((takes(&late, at(2)), key_takes(&late, at(2))), (0, 0));
        assert_eq!(late.limiter(0).unwrap().peek_at(0, at(2)).unwrap().limit, 9);
        assert_eq!((takes(&late, at(200)), key_takes(&late, at(200))), (9, 9));
    }
    of(Log::builder(3, MINUTE).capacity(10).config().unwrap());
    of(Window::builder(3, MINUTE).config().unwrap());
    of(Fixed::builder(3, MINUTE).config().unwrap());
    of(TwoWindow::builder(3, MINUTE).config().unwrap());
}

#[test]
fn any_number_of_rules_comes_and_goes() {
    let ([first, second], file) = twice(log());
    let (ours, theirs) = (first.limiter(0).unwrap(), second.limiter(0).unwrap());
    assert_eq!(takes(&first, at(0)), 3);
    let most: Vec<_> = (1..).take(tollgate::RULES_MAX).map(|n| Rule::new(2 + n, MINUTE * n as u32)).collect();
    first.set_rules(&most).unwrap();
    assert_eq!((&second.rules()[..], &inspect_fd(&file).unwrap().rules[..]), (&most[..], &most[..]));
    assert!((0..most.len()).all(|rule| theirs.usage_at(rule, at(1)) == Some(3)));
    assert_eq!((takes(&second, at(1)), takes(&first, at(60))), (0, 1), "4 in two minutes");
    second.set_rules(&[rule(4)]).unwrap();
    assert_eq!(
        (ours.usage_at(0, at(60)), ours.usage_at(1, at(60)), takes(&first, at(60))),
        (Some(1), None, 3)
    );
    first.set_rules(&[Rule::new(10, Duration::from_nanos(1))]).unwrap();
    assert_eq!((takes(&second, at(500)), takes(&first, at(500))), (10, 0));
    second.set_rules(&[Rule::new(10, 100 * MINUTE)]).unwrap();
    assert_eq!(takes(&first, at(501)), 0);
}

#[test]
fn keys_go_by_the_rules_in_force() {
    let ([first, second], _file) = twice(log().when_full(WhenFull::Refuse));
    first.set_rules(&[rule(9)]).unwrap();
    let keys = second.keys().unwrap();
    let key = |n: u64| n.to_le_bytes();
    assert!((0..14).all(|n| keys.try_acquire_at(&key(n), 7, at(1))));
    assert_eq!(keys.len(), 14, "more than the first limit, and each has a place");
    assert_eq!(keys.peek_at(&key(3), 1, at(2)).unwrap().remaining, 2);
    for answer in [keys.check_at(&key(14), 7, at(2)), keys.peek_at(&key(14), 7, at(2))] {
        let denied = answer.unwrap_err();
        assert_eq!(denied.reason, Reason::Full { retry_after: at(59) });
        assert_eq!(denied.quota.limit, 9);
    }
    first.set_rules(&[Rule::new(9, 60 * MINUTE)]).unwrap();
    assert_eq!(keys.usage_at(&key(3), 0, at(100)), Some(7));
    let reason = keys.check_at(&key(14), 1, at(100)).unwrap_err().reason;
    assert_eq!(reason, Reason::Full { retry_after: at(3501) }, "no place is idle now");
}

/// What the rules before charged no more is not charged again by a longer window, to keys whose place was taken meanwhile.
#[test]
fn a_longer_window_finds_what_is_left() {
    let builder = log().when_full(WhenFull::Refuse);
    let ([first, second], _file) = twice(builder);
    let keys = first.keys().unwrap();
    let take = |n: u64, cost, now| keys.try_acquire_at(&n.to_le_bytes(), cost, at(now));
    assert!((0..14).all(|n| take(n, 3, 10)));
    assert!(take(100, 1, 70), "the first place is idle under a minute");
    second.set_rules(&[Rule::new(3, 3 * MINUTE)]).unwrap();
    assert!(!take(1, 1, 80), "who kept its place is charged for longer");
    assert_eq!(keys.usage_at(&1_u64.to_le_bytes(), 0, at(80)), Some(3));
    assert!(!take(0, 1, 80), "now no place is idle");
    assert!(take(0, 3, 190), "and what had left with its place is forgotten");
}

/// A place is handed on with what lies in it, which a longer window charges again: to its new key. Not where the rules had that
/// window before: then it was not handed on.
#[test]
fn a_longer_window_charges_a_key_for_those_before() {
    fn of<C: ChangingConfig>(config: C, longer: &[Rule], at_first: u64, then: u64) {
        let builder = Region::builder(config).keys(7).time(Time::Caller).when_full(WhenFull::Refuse).live();
        let ([first, second], _file) = twice(builder);
        let keys = first.keys().unwrap();
        let take = |n: u64, cost, now| keys.try_acquire_at(&n.to_le_bytes(), cost, at(now));
        let used = |rule, now| keys.usage_at(&14_u64.to_le_bytes(), rule, at(now)).unwrap();
        assert!((0..14).all(|n| take(n, 3, 10)));
        assert_eq!(take(14, 1, 90), at_first > 0, "the first place is idle under a minute");
        assert_eq!(used(0, 90), at_first);
        second.set_rules(longer).unwrap();
        assert_eq!(used(longer.len() - 1, 91), then);
        assert!(!take(14, 1, 91), "3 in an hour, or no place");
        assert!(take(14, 3, 90 + 3600 + 600), "for up to that window");
    }
    let hour = Rule::new(3, 60 * MINUTE);
    let log = Log::builder(3, MINUTE).capacity(10);
    of(log.config().unwrap(), &[hour], 1, 4);
    of(log.config().unwrap(), &[rule(3), hour], 1, 4);
    of(Window::builder(3, MINUTE).window_max(60 * MINUTE).config().unwrap(), &[hour], 1, 4);
    of(log.rule(10, 60 * MINUTE).config().unwrap(), &[hour], 0, 0);
}

/// Bytes that no process leaves: they are told at the attachment, and later leave a process with the rules that it has.
#[test]
fn foreign_rules_are_not_followed() {
    let memory = Shared::new(log().bytes().unwrap());
    // SAFETY: contract of `place`: others write it by atomic accesses of words.
    let place = || unsafe { log().place(memory.bytes()) };
    let region = place().unwrap();
    region.set_rules(&[rule(5)]).unwrap();
    assert_eq!(takes(&region, at(0)), 5);
    let (state, slots) = memory.words()[RULES..].split_first().unwrap();
    let odd = &slots[33..66];
    let tag = 1 << 32;
    assert_eq!((state.load(Relaxed), odd[0].load(Relaxed)), (tag | 1, tag | 4), "the first change");
    assert_eq!(odd[2].load(Relaxed), tag | 5, "its limit");

    for (at, word) in odd.iter().enumerate() {
        let was = word.fetch_xor(tag, Relaxed);
        let is_told = place().map(|_| ()) == Err(SharedError::Rules);
        assert_eq!(is_told, at < 5, "word {at} of another change, of five in use");
        word.store(was, Relaxed);
    }
    odd[2].store(tag | 11, Relaxed);
    assert_eq!(place().map(|_| ()), Err(SharedError::Rules), "more than the capacity");
    odd[0].store(tag | u64::from(u32::MAX), Relaxed);
    assert_eq!(place().map(|_| ()), Err(SharedError::Rules), "more rules than there can be");
    assert_eq!(region.rules()[..], [rule(5)], "it has read what was right");

    // Another change, as far as anybody can tell.
    for word in odd {
        word.store((word.load(Relaxed) & u64::from(u32::MAX)) | (3 * tag), Relaxed);
    }
    state.store((3 * tag) | 3, Relaxed);
    assert_eq!((region.rules()[..].to_vec(), takes(&region, at(60))), (vec![rule(5)], 5));
    state.store((5 * tag) | 5, Relaxed);
    assert_eq!((region.rules()[..].to_vec(), takes(&region, at(120))), (vec![rule(5)], 5), "not whole");
    region.set_rules(&[rule(7)]).unwrap();
    assert_eq!((region.rules()[..].to_vec(), takes(&place().unwrap(), at(180))), (vec![rule(7)], 7));
}

/// Any bits at all: every call and every change comes back.
#[test]
fn rules_of_any_bits_are_harmless() {
    let memory = Shared::new(log().bytes().unwrap());
    // SAFETY: contract of `place`: others write it by atomic accesses of words.
    let place = || unsafe { log().place(memory.bytes()) };
    let region = place().unwrap();
    let (mut random, mut attached) = (1_u64, 0);
    let mut next = || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        random >> 20
    };
    for n in 0..20_000 {
        for word in &memory.words()[RULES..RULES + 67] {
            if next() % 8 == 0 {
                word.store(((next() % 4) << 32) | (next() % 12), Relaxed);
            }
        }
        let now = at(n);
        region.limiter(0).unwrap().try_acquire_at(1, now);
        region.keys().unwrap().try_acquire_at(&[next() as u8], 1, now);
        assert!((1..=tollgate::RULES_MAX).contains(&region.rules().len()));
        attached += u64::from(place().is_ok());
        if n % 4 == 0 {
            region.set_rules(&[rule(n % 10)]).unwrap();
            assert_eq!(place().unwrap().rules()[..], [rule(n % 10)]);
        }
    }
    assert!((100..19_900).contains(&attached), "{attached}: neither all nor none");
}

/// Changes in mid-traffic, of several processes: never over the larger of the limits, and after the last one exact.
#[test]
fn never_over_the_larger_limit() {
    const WINDOW: Nanos = Nanos::from_micros(300);
    let builder = Region::builder(Log::builder(40, WINDOW.into()).config().unwrap());
    let ([first, second], _file) = twice(builder.limiters(1).live());
    let limits = [10, 25, 40].map(|limit| [Rule::new(limit, WINDOW.into())]);
    let done = AtomicBool::new(false);
    let mut admitted: Vec<_> = thread::scope(|scope| {
        let callers = [&first, &second].map(|region| {
            scope.spawn(|| {
                let mut own = Vec::new();
                while !done.load(Relaxed) {
                    let now = region.now().unwrap();
                    // Told of a moment after the admission, which lies between that of the call and that.
                    own.extend(region.limiter(0).unwrap().check_at(1, now).map(|quota| (quota.at, now)));
                }
                own
            })
        });
        let writers = [&first, &second].map(|region| {
            let limits = &limits;
            scope.spawn(move || (0..30_000).for_each(|n| region.set_rules(&limits[n % 3]).unwrap()))
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    admitted.sort_unstable();
    assert!(admitted.len() > 100, "{} admissions", admitted.len());
    for (n, &(end, _)) in admitted.iter().enumerate() {
        let recent = admitted[..=n].iter().rev().take_while(|(to, _)| end - *to < WINDOW);
        let within = recent.filter(|(_, from)| end - *from < WINDOW).count();
        assert!(within <= 40, "{within} permits in the window to {end:?}");
    }
    for (region, limit) in [(&first, &limits[0]), (&second, &limits[2])] {
        region.set_rules(limit).unwrap();
        let late = first.now().unwrap() + Nanos::from_secs(limit[0].limit);
        assert_eq!(takes(&first, late) + takes(&second, late), limit[0].limit);
    }
}

//! Regions whose bytes come from somebody hostile: wrong decisions at worst.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use tollgate::{
    Algorithm, Config, Fixed, Gcra, Log, Nanos, Rule, TwoWindow, WhenFull, Window,
    shared::{ChangingConfig, Region, RegionBuilder, SharedError, Time},
};

use crate::memory::Shared;

const WINDOW: Duration = Duration::from_nanos(20);

/// Numbers that look random, always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A word with a kind of bits that words of states have.
    fn word(&mut self) -> u64 {
        let any = self.next();
        match self.next() % 8 {
            0 => 0,
            1 => any,
            2 => any >> 48,
            3 => u64::MAX - (any >> 56),
            4 => 1 << (any % 64),
            5 => 1 << 63 | any >> 58,
            6 => any >> 40 << 40 | any & 0xff,
            _ => any >> (any % 64),
        }
    }
}

/// Every call that there is, with times that no clock shows.
fn ask<C: Config>(region: &Region<C>, random: &mut Random, calls: u64) {
    for _ in 0..calls {
        let cost = random.next() % 8;
        let now = Nanos::from_nanos(random.word());
        let limiter = region.limiter(random.next() % region.limiters()).expect("there are so many");
        let keys = region.keys().expect("there is room for some");
        let key = [random.next() as u8];
        match random.next() % 9 {
            0 => drop(limiter.try_acquire_at(cost, now)),
            1 => drop(limiter.check_at(cost, now)),
            2 => drop(limiter.peek_at(cost, now)),
            3 => drop(limiter.usage_at(0, now)),
            4 => drop(keys.try_acquire_at(&key, cost, now)),
            5 => drop(keys.check_at(&key, cost, now)),
            6 => drop(keys.peek_at(&key, cost, now)),
            7 => drop(region.set_rules(
                &[Rule::new(cost, WINDOW), Rule { limit: 5, window: now }][..1 + key[0] as usize % 2],
            )),
            _ => drop(keys.usage_at(&key, 0, now)),
        }
    }
}

/// Hands out the attack on every kind of configuration; it tells whether there was anything to ask.
fn each(visit: &mut impl FnMut(&mut dyn FnMut(&mut Random, &Shared, Attack) -> bool)) {
    fn of<C: Config>(
        builder: RegionBuilder<C>,
        visit: &mut impl FnMut(&mut dyn FnMut(&mut Random, &Shared, Attack) -> bool),
    ) {
        visit(&mut |random, memory, attack| attack_on(builder, random, memory, attack));
    }
    fn of_both<C: ChangingConfig>(
        config: C,
        visit: &mut impl FnMut(&mut dyn FnMut(&mut Random, &Shared, Attack) -> bool),
    ) {
        of(Region::builder(config), visit);
        of(Region::builder(config).live(), visit);
    }
    let log = Log::builder(5, WINDOW);
    of_both(log.config().unwrap(), visit);
    of_both(log.max_cost(1).config().unwrap(), visit);
    of_both(log.rule(7, 2 * WINDOW).config().unwrap(), visit);
    of(Region::builder(Window::builder(5, WINDOW).buckets(5).config().unwrap()), visit);
    of_both(Window::builder(3, WINDOW).buckets(5).config().unwrap(), visit);
    of_both(Fixed::builder(5, WINDOW).config().unwrap(), visit);
    of_both(TwoWindow::builder(5, WINDOW).config().unwrap(), visit);
    of(Region::builder(Gcra::builder(5, WINDOW).burst(3).config().unwrap()), visit);
}

/// Sets a flag at the end of its scope.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// When the bytes are put.
#[derive(Clone, Copy)]
enum Attack {
    /// Before the region is attached to.
    Before,
    /// All the time.
    #[cfg_attr(debug_assertions, expect(dead_code, reason = "built for release alone"))]
    Meanwhile,
}

fn attack_on<C: Config>(
    builder: RegionBuilder<C>,
    random: &mut Random,
    memory: &Shared,
    attack: Attack,
) -> bool {
    let when_full = [WhenFull::Share, WhenFull::Refuse][random.next() as usize % 2];
    let builder = builder.limiters(2).keys(3).time(Time::Caller).when_full(when_full);
    let bytes = builder.bytes().unwrap();
    let all = memory.bytes();
    // The region ends where the memory does: a step beyond is a fault.
    // SAFETY: inside of the memory.
    let start = unsafe { all.cast::<u8>().add(all.len() - bytes) };
    let place = std::ptr::NonNull::slice_from_raw_parts(start, bytes);
    let words = &memory.words()[(all.len() - bytes) / 8..];
    words.iter().for_each(|word| word.store(0, Relaxed));
    // SAFETY: contract of `place`: others write it by atomic accesses of words.
    let region = unsafe { builder.place(place) }.unwrap();
    let states = 1024 / 8..words.len();
    let scribble = |random: &mut Random, words: &[_], share: u64| {
        for word in words {
            let word: &std::sync::atomic::AtomicU64 = word;
            if random.next().is_multiple_of(share) {
                word.store(random.word(), Relaxed);
            }
        }
    };
    match attack {
        Attack::Before => {
            let share = [1, 8, 64][random.next() as usize % 3];
            scribble(random, &words[states], share);
            // SAFETY: contract of `place`: as above.
            match unsafe { builder.place(place) } {
                Ok(region) => {
                    ask(&region, random, 200);
                    return true;
                }
                Err(SharedError::State { .. } | SharedError::Rules) => {}
                Err(other) => panic!("{other}"),
            }
        }
        Attack::Meanwhile => {
            let done = AtomicBool::new(false);
            let mut other = Random(random.next());
            thread::scope(|scope| {
                // Whatever comes.
                let _end = Set(&done);
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        scribble(&mut other, &words[states.clone()], 4);
                    }
                });
                ask(&region, random, 3_000);
            });
        }
    }
    false
}

#[test]
fn bytes_from_before_are_refused_or_harmless() {
    let (memory, mut random) = (Shared::new(1 << 16), Random(1));
    each(&mut |attack| {
        let attached = (0..600).filter(|_| attack(&mut random, &memory, Attack::Before)).count();
        assert!(attached > 20 && attached < 600, "{attached}: neither all nor none");
    });
}

/// Only in builds without debug assertions (`ci/crash.sh`): a call that is cheated may compute nonsense.
#[cfg(not(debug_assertions))]
#[test]
fn bytes_that_change_meanwhile_are_harmless() {
    let (memory, mut random) = (Shared::new(1 << 16), Random(2));
    each(&mut |attack| {
        attack(&mut random, &memory, Attack::Meanwhile);
    });
}

/// Zeros but for one thing: the words of a table, of any bits.
#[test]
fn words_of_a_table_may_have_any_bits() {
    let mut random = Random(3);
    let config = Gcra::builder(5, WINDOW).config().unwrap();
    let builder = Region::builder(config).limiters(1).keys(7).time(Time::Caller);
    let memory = Shared::new(builder.bytes().unwrap());
    // SAFETY: contract of `place`: others write it by atomic accesses of words.
    let place = || unsafe { builder.place(memory.bytes()) }.unwrap();
    let region = place();
    let table = (1024 + 3 * 128) / 8;
    for _ in 0..20_000 {
        for word in &memory.words()[table..table + 16] {
            word.store(random.word(), Relaxed);
        }
        ask(&region, &mut random, 8);
    }
    drop(place());
}

/// Single bits: of the header every one is noticed.
#[test]
fn every_bit_of_a_header_counts() {
    let config = Log::builder(5, WINDOW).config().unwrap();
    let builder = Region::builder(config).limiters(2).keys(3);
    let (region, file) = builder.memfd("flipped").unwrap();
    let memory = region_bytes(&file, region.bytes());
    let mut errors = std::collections::BTreeMap::<String, u32>::new();
    for bit in 0..1024 * 8 {
        let word = &memory[bit / 64];
        word.fetch_xor(1 << (bit % 64), Relaxed);
        let error = builder.attach_fd(&file).map(|_| ()).expect_err("a flipped bit");
        let name = format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
        *errors.entry(name).or_default() += 1;
        word.fetch_xor(1 << (bit % 64), Relaxed);
    }
    assert!(builder.attach_fd(&file).is_ok(), "as it was");
    assert_eq!(format!("{errors:?}"), r#"{"Corrupt": 8064, "Layout": 64, "Magic": 64}"#);
}

/// Another mapping of a file.
fn region_bytes(file: &impl std::os::fd::AsRawFd, bytes: usize) -> &'static [std::sync::atomic::AtomicU64] {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (file, null) = (file.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: contract of `mmap`: new memory, wherever there is room.
    let memory = unsafe { libc::mmap(null, bytes, access, libc::MAP_SHARED, file, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: mapped for as long as the process lives, aligned, of any bits.
    unsafe { std::slice::from_raw_parts(memory.cast(), bytes / 8) }
}

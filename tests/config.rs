//! Configurations apart from their states: the answers are those of the types that own both.

use std::{ptr::NonNull, time::Duration};

use proptest::prelude::*;
use tollgate::{
    Algorithm, Config, Fixed, Gcra, Log, Nanos, PlaceError, Placed, STATE_ALIGN, TwoWindow, Window,
};

const WINDOW: Duration = Duration::from_nanos(20);

/// Zeroed memory between two guards.
struct Memory {
    lines: Vec<[u64; 16]>,
    bytes: usize,
}

const GUARD: u64 = 0x5a5a_5a5a_5a5a_5a5a;

// === impl Memory ===

impl Memory {
    fn new(bytes: usize) -> Self {
        assert_eq!((bytes % STATE_ALIGN, STATE_ALIGN % 64), (0, 0), "whole lines");
        let words = bytes / 8;
        let mut lines = vec![[GUARD; 16]; words.div_ceil(16) + 2 * STATE_ALIGN.div_ceil(128) + 1];
        let memory = lines.as_flattened_mut();
        let start = Self::start(memory);
        memory[start..start + words].fill(0);
        Self { lines, bytes }
    }

    /// The first aligned word with a guard before it.
    fn start(memory: &[u64]) -> usize {
        (1..).find(|&word| (&raw const memory[word]).addr().is_multiple_of(STATE_ALIGN)).expect("endless")
    }

    fn state(&mut self) -> &mut [u8] {
        let memory = self.lines.as_flattened_mut();
        let start = Self::start(memory);
        let words = &mut memory[start..start + self.bytes / 8];
        // SAFETY: words are bytes.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), self.bytes) }
    }

    fn words(&self) -> &[u64] {
        let memory = self.lines.as_flattened();
        let start = Self::start(memory);
        let (before, rest) = memory.split_at(start);
        let (state, after) = rest.split_at(self.bytes / 8);
        assert!(before.iter().chain(after).all(|&word| word == GUARD), "written outside the state");
        state
    }
}

type Calls = Vec<(u64, u64, u8)>;

fn calls() -> impl Strategy<Value = Calls> {
    proptest::collection::vec((0..6_u64, prop_oneof![4 => 0..5_u64, 1 => 0..90_u64], 0..8_u8), 1..120)
}

/// Asks both the same questions; one in eight is a step back, one a time out of range.
fn same_answers<C: Config>(mut owned: impl Algorithm, config: C, calls: &Calls) -> Result<(), TestCaseError> {
    let [mut memory, mut spare] = [(); 2].map(|()| Memory::new(config.state_bytes()));
    let mut placed = Placed::new(&config, memory.state()).unwrap();
    let idle = Placed::new(&config, spare.state()).unwrap();
    prop_assert_eq!((owned.state_bytes(), owned.rules()), (placed.state_bytes(), placed.rules()));
    let mut clock = 0;
    for &(cost, step, kind) in calls {
        clock += step;
        let now = Nanos::from_nanos(match kind {
            0 => clock.saturating_sub(7),
            1 => u64::MAX - clock,
            _ => clock,
        });
        prop_assert_eq!(owned.peek_at(cost, now), placed.peek_at(cost, now));
        if kind % 2 == 0 {
            prop_assert_eq!(owned.check_at(cost, now), placed.check_at(cost, now));
        } else {
            prop_assert_eq!(owned.try_acquire_at(cost, now), placed.try_acquire_at(cost, now));
        }
        for rule in 0..=owned.rules().len() {
            prop_assert_eq!(owned.usage_at(rule, now), placed.usage_at(rule, now));
        }
    }
    let now = Nanos::from_nanos(clock);
    prop_assert_eq!(idle.usage_at(0, now), Some(0), "another state under the same configuration");
    owned.reset();
    placed.reset();
    prop_assert!(memory.words().iter().all(|&word| word == 0), "a state is zero again");
    prop_assert!(spare.words().iter().all(|&word| word == 0), "nobody wrote to it");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_state_elsewhere_answers_as_one_that_is_owned(calls in calls(), limit in 0..6_u64, second in 0..7_u64) {
        let log = Log::builder(limit, WINDOW).rule(second, 2 * WINDOW);
        same_answers(log.build().unwrap(), log.config().unwrap(), &calls)?;
        let log = Log::builder(limit, WINDOW);
        same_answers(log.build().unwrap(), log.config().unwrap(), &calls)?;
        same_answers(log.max_cost(1).build().unwrap(), log.max_cost(1).config().unwrap(), &calls)?;
        let window = Window::builder(limit, WINDOW).buckets(5).rule(second, 3 * WINDOW);
        same_answers(window.build().unwrap(), window.config().unwrap(), &calls)?;
        let fixed = Fixed::builder(limit, WINDOW);
        same_answers(fixed.build().unwrap(), fixed.config().unwrap(), &calls)?;
        let two = TwoWindow::builder(limit, WINDOW);
        same_answers(two.build().unwrap(), two.config().unwrap(), &calls)?;
        let gcra = Gcra::builder(limit, WINDOW).burst(second.max(1));
        same_answers(gcra.build().unwrap(), gcra.config().unwrap(), &calls)?;
    }
}

#[test]
fn memory_that_is_no_state_gets_an_error() {
    let config = Log::builder(5, WINDOW).config().unwrap();
    let bytes = config.state_bytes();
    let mut memory = Memory::new(2 * bytes);
    let refused = |memory: &mut [u8]| Placed::new(&config, memory).map(|_| ()).unwrap_err();
    let short = refused(&mut memory.state()[..bytes - 1]);
    assert_eq!(short, PlaceError::Short { got: bytes - 1, min: bytes });
    assert_eq!(short.to_string(), format!("{} bytes are too few for a state of {bytes}", bytes - 1));
    let unaligned = refused(&mut memory.state()[8..]);
    assert_eq!(unaligned, PlaceError::Unaligned { past: 8, align: STATE_ALIGN });
    memory.state()[STATE_ALIGN] = 1;
    assert_eq!(refused(memory.state()), PlaceError::Foreign);

    let counter = Window::builder(5, WINDOW).buckets(5).config().unwrap();
    let mut memory = Memory::new(counter.state_bytes());
    memory.state()[STATE_ALIGN + 7] = 0x80; // Admitted before the first bucket.
    assert_eq!(Placed::new(&counter, memory.state()).map(|_| ()).unwrap_err(), PlaceError::Foreign);
}

#[test]
fn configurations_are_equal_if_their_words_are() {
    fn words<C: Config>(config: C) -> Vec<u64> {
        config.words().to_vec()
    }
    let log = |limit| words(Log::builder(limit, WINDOW).config().unwrap());
    assert_eq!(log(7), log(7));
    assert_ne!(log(7), log(8));
    assert_ne!(log(7), words(Log::builder(7, WINDOW).rule(9, 2 * WINDOW).config().unwrap()));
    let window = |buckets| words(Window::builder(3, WINDOW).buckets(buckets).config().unwrap());
    assert_eq!(window(2), window(2));
    assert_ne!(window(2), window(4));
    let one_word = [
        words(Fixed::builder(3, WINDOW).config().unwrap()),
        words(TwoWindow::builder(3, WINDOW).config().unwrap()),
        words(Gcra::builder(3, WINDOW).config().unwrap()),
    ];
    assert_eq!(one_word[0], words(Fixed::builder(3, WINDOW).config().unwrap()));
    assert_ne!(one_word[0], words(Fixed::builder(3, WINDOW).max_cost(2).config().unwrap()));
    assert_ne!(one_word[1], words(TwoWindow::builder(2, WINDOW).config().unwrap()));
    assert_ne!(one_word[2], words(Gcra::builder(3, WINDOW).burst(2).config().unwrap()));
}

/// A mapping that a process may only read answers every question, and a refusal too.
#[cfg(unix)]
#[test]
fn looks_and_refusals_work_where_nothing_can_be_written() {
    fn answers<C: Config>(config: C) {
        let bytes = config.state_bytes();
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: contract of `mmap`: new memory, wherever there is room.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        let state = NonNull::new(mapping).expect("not at zero").cast();

        let (now, old, late) = (Nanos::from_nanos(45), Nanos::from_nanos(3), Nanos::from_nanos(46));
        // SAFETY: contract of `Config`: zeroed memory, as large as asked, on a page of its own.
        while unsafe { config.try_acquire_at(state, 1, now) } {}
        let ask = |cost, now| {
            // SAFETY: contract of `Config`: as above.
            let peeked = unsafe { config.peek_at(state, cost, now) };
            // SAFETY: contract of `Config`: as above.
            (peeked, unsafe { config.usage_at(state, 0, now) })
        };
        let questions = [old, now, late].map(|now| [0, 1, 3, 9].map(|cost| (cost, now))).concat();
        let before: Vec<_> = questions.iter().map(|&(cost, now)| ask(cost, now)).collect();

        // SAFETY: contract of `mprotect`: the mapping made above.
        assert_eq!(unsafe { libc::mprotect(mapping, bytes, libc::PROT_READ) }, 0);
        let after: Vec<_> = questions.iter().map(|&(cost, now)| ask(cost, now)).collect();
        assert_eq!(before, after);
        for (cost, now) in questions {
            if let Err(denied) = ask(cost, now).0 {
                // SAFETY: contract of `Config`: as above; a refusal stores nothing.
                assert!(!unsafe { config.try_acquire_at(state, cost, now) });
                // SAFETY: contract of `Config`: as above; a refusal stores nothing.
                assert_eq!(unsafe { config.check_at(state, cost, now) }, Err(denied));
            }
        }
        // SAFETY: contract of `munmap`: the mapping made above, which nobody uses any more.
        assert_eq!(unsafe { libc::munmap(mapping, bytes) }, 0);
    }
    let log = Log::builder(5, WINDOW);
    answers(log.config().unwrap());
    answers(log.max_cost(1).config().unwrap());
    answers(log.rule(7, 2 * WINDOW).config().unwrap());
    answers(Window::builder(5, WINDOW).buckets(5).config().unwrap());
    answers(Fixed::builder(5, WINDOW).config().unwrap());
    answers(TwoWindow::builder(5, WINDOW).config().unwrap());
    answers(Gcra::builder(5, WINDOW).config().unwrap());
}

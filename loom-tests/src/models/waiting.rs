//! Seats for those who wait: taken by callers, given back by those who are admitted, give up or run out of time.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tollgate::{Algorithm, Block, Clock, Log, Manual, Nanos, Quota, Timer, WaitError, Waiting};
use tollgate_check::{Call, Limiter, Oracle, Question, Scenario, Spec, Verdict, acquire};

use super::{Model, Subject};
use crate::oracles::Asserts;

const SEATS: u64 = 2;

/// One in any 10 ns, and taken at 0.
fn full() -> Log {
    let log = Log::builder(1, Duration::from_nanos(10)).max_cost(1).build().expect("valid");
    assert!(log.try_acquire_at(1, Nanos::ZERO));
    log
}

/// Time stands still, and nobody wakes.
struct Still;

impl Clock for Still {
    fn now(&self) -> Nanos {
        Nanos::from_nanos(1)
    }
}

impl Timer for Still {
    fn sleep(&self, _: Duration) -> impl Future<Output = ()> + Send {
        pending()
    }
}

type Waiter = Pin<Box<dyn Future<Output = Result<Quota, WaitError>> + Send>>;

/// Callers, by number, who sit down to wait and give up.
struct Room {
    waiting: Arc<Waiting<Still, Still>>,
    limiter: Arc<Log>,
    /// Those who sit. Not seen by the model.
    seated: Mutex<Vec<(u64, Waiter)>>,
}

/// As many sit as have sat down and not given up, never more than there are seats.
struct Seats;

impl Room {
    fn new() -> Self {
        let waiting = Waiting::new(Still, Still).waiters_max(SEATS);
        Self { waiting: waiting.into(), limiter: full().into(), seated: Mutex::default() }
    }

    fn sit(&self, caller: u64) -> bool {
        let (waiting, limiter) = (self.waiting.clone(), self.limiter.clone());
        let mut waiter: Waiter = Box::pin(async move { waiting.acquire(&*limiter, 1).await });
        match waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => {
                self.seated.lock().unwrap_or_else(PoisonError::into_inner).push((caller, waiter))
            }
            Poll::Ready(answer) => {
                assert_eq!(answer, Err(WaitError::Crowded { max: SEATS }));
                return false;
            }
        }
        true
    }

    /// Drops the future of a caller who sits.
    fn give_up(&self, caller: u64) -> bool {
        let waiter = {
            let mut seated = self.seated.lock().unwrap_or_else(PoisonError::into_inner);
            seated.iter().position(|(who, _)| *who == caller).map(|place| seated.remove(place))
        };
        waiter.is_some()
    }
}

/// A caller of a number comes and sits down, or has to leave.
fn sit(caller: u64) -> Call {
    acquire(2 * caller, 0)
}

/// Whoever sits gives up.
fn give_up(caller: u64) -> Call {
    acquire(2 * caller + 1, 0)
}

impl Limiter for Room {
    fn try_acquire(&self, what: u64, _: u64) -> Verdict {
        let caller = what / 2;
        Verdict::yes_or_no(if what.is_multiple_of(2) { self.sit(caller) } else { self.give_up(caller) })
    }

    /// How many sit.
    fn peek(&self, sitting: u64, _: u64) -> Option<Verdict> {
        Some(Verdict::yes_or_no(self.waiting.waiters() == sitting))
    }
}

impl Oracle for Seats {
    type State = Vec<u64>;

    fn name(&self) -> String {
        format!("{SEATS} seats")
    }

    fn start(&self) -> Vec<u64> {
        vec![]
    }

    fn outcomes(&self, sitting: &Vec<u64>, question: &Question<'_>) -> Option<Vec<(Verdict, Vec<u64>)>> {
        let mut next = sitting.clone();
        let answer = match *question.call {
            Call::Peek { cost, .. } => sitting.len() as u64 == cost,
            Call::Acquire { cost, .. } if cost.is_multiple_of(2) => {
                let free = (sitting.len() as u64) < SEATS;
                next.extend(free.then_some(cost / 2));
                free
            }
            Call::Acquire { cost, .. } => {
                next.retain(|caller| *caller != cost / 2);
                next.len() < sitting.len()
            }
            _ => return None,
        };
        Some(vec![(Verdict::yes_or_no(answer), next)])
    }
}

/// Callers who sleep where they sit, by a clock that each sleep moves on.
struct Sleepers {
    waiting: Waiting<Arc<Manual>, Bed>,
    limiter: Log,
    /// When somebody was admitted. Not seen by the model.
    admitted: Mutex<Vec<Nanos>>,
}

struct Bed {
    clock: Arc<Manual>,
    /// How much too soon it wakes who sleeps.
    early: Duration,
    /// Not seen by the model.
    sleeping: AtomicU64,
}

impl Block for Bed {
    fn block(&self, span: Duration) {
        let sleeping = self.sleeping.fetch_add(1, Relaxed) + 1;
        assert!(sleeping <= 1, "{sleeping} sleep in one seat");
        self.clock.advance(span.saturating_sub(self.early).max(Duration::from_nanos(1)));
        self.sleeping.fetch_sub(1, Relaxed);
    }
}

impl Sleepers {
    /// Waits as long as the call's time says.
    const WAIT: u64 = 1;
    /// As `WAIT`, when all others are done: it is admitted.
    const ALONE: u64 = 2;
    /// When all is done: nobody sits, and what is charged is what was admitted in the last window.
    const AUDIT: u64 = 3;

    fn new(early: Duration) -> Self {
        let clock = Arc::new(Manual::at(Nanos::from_nanos(1)));
        let bed = Bed { clock: clock.clone(), early, sleeping: AtomicU64::new(0) };
        let waiting = Waiting::new(clock, bed).waiters_max(1);
        Self { waiting, limiter: full(), admitted: Mutex::new(vec![Nanos::ZERO]) }
    }
}

impl Limiter for Sleepers {
    fn try_acquire(&self, what: u64, timeout: u64) -> Verdict {
        let admitted = || self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if what == Self::AUDIT {
            assert_eq!(self.waiting.waiters(), 0, "seats were kept");
            let newest = admitted().iter().copied().max().unwrap_or(Nanos::ZERO);
            let recent = admitted().iter().filter(|&&at| at + Nanos::from_nanos(10) > newest).count();
            assert_eq!(self.limiter.usage_at(0, newest), Some(recent as u64), "charged, and admitted");
        } else {
            let answer = self.waiting.acquire_timeout(&self.limiter, 1, Duration::from_nanos(timeout));
            assert!(!matches!(answer, Err(WaitError::Never(_))), "{answer:?}");
            assert!(what == Self::WAIT || answer.is_ok(), "{answer:?}");
            admitted().extend(answer.ok().map(|quota| quota.at));
        }
        Verdict::Admitted
    }
}

pub(super) fn add(models: &mut Vec<Model>) {
    let room = Subject::new("waiting, 2 seats", Room::new, Spec::oracle(Seats));
    let sleepers = |name, early| {
        Subject::new(name, move || Sleepers::new(Duration::from_nanos(early)), Spec::oracle(Asserts))
    };
    let asleep = sleepers("waiting, asleep in 1 seat", 0);
    let woken = sleepers("waiting, woken early", 4);
    let wait = |timeout| acquire(Sleepers::WAIT, timeout);
    let audit = acquire(Sleepers::AUDIT, 0);
    let sitting = |n| tollgate_check::peek(n, 0);
    models.extend([
        room.model(Scenario::new("the last seat").setup([sit(1)]).thread([sit(2)]).thread([sit(3)]).after([
            sit(4),
            sitting(SEATS),
            give_up(1),
            sit(5),
            sitting(SEATS),
        ]))
        .exhaustive(),
        room.model(
            Scenario::new("a seat is given up, against a newcomer")
                .setup([sit(1), sit(2)])
                .thread([give_up(1)])
                .thread([sit(3), sit(4)])
                .after([give_up(2), give_up(3), give_up(4), sitting(0), sit(5), sit(6), sit(7)]),
        )
        .exhaustive(),
        room.model(
            Scenario::new("two give up at once")
                .setup([sit(1), sit(2)])
                .thread([give_up(1)])
                .thread([give_up(2)])
                .after([sitting(0), sit(3), sit(4), sit(5)]),
        )
        .exhaustive(),
        room.model(
            Scenario::new("seats change hands")
                .setup([sit(1)])
                .thread([sit(2), give_up(2), sit(3)])
                .thread([give_up(1), sit(4), give_up(4)])
                .after([give_up(3), sitting(0), sit(5), sit(6)]),
        ),
        // Whoever comes first sleeps until 10. The other is crowded out, or too late, or sleeps in its turn.
        asleep.model(Scenario::new("one at a time").thread([wait(12)]).thread([wait(12)]).after([
            audit.clone(),
            acquire(Sleepers::ALONE, 30),
            audit.clone(),
        ])),
        // In the one seat that it has it sleeps again and again.
        woken
            .model(
                Scenario::new("one seat for all sleeps")
                    .thread([acquire(Sleepers::ALONE, 30)])
                    .after([audit]),
            )
            .exhaustive()
            .not_by_chance(), // There is one thread.
    ]);
}

//! Waiting, by a clock and timers that the tests move.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tollgate::{
    Algorithm, Block, Clock, Fixed, Gcra, Keyed, Layer, Limiter, Log, Manual, Nanos, Pacing, Precise, Quota,
    Reason, Thread, Timer, TokenBucket, Tokio, TwoWindow, WaitError, Waiting, Window,
};

/// Sleeps on the manual clock: to block moves it on.
#[derive(Clone)]
struct Hands(Arc<Manual>);

struct Until(Arc<Manual>, Nanos);

impl Future for Until {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now() < self.1 { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Timer for Hands {
    fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send {
        Until(self.0.clone(), self.0.now() + span.into())
    }
}

impl Block for Hands {
    fn block(&self, span: Duration) {
        self.0.advance(span);
    }
}

type Room = Waiting<Arc<Manual>, Hands>;

fn room() -> (Room, Arc<Manual>) {
    let clock = Arc::new(Manual::at(Nanos::from_secs(1_000)));
    (Waiting::new(clock.clone(), Hands(clock.clone())), clock)
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn is_timeout(answer: Result<Quota, WaitError>) -> bool {
    matches!(answer, Err(WaitError::Timeout(_)))
}

#[test]
fn f009_queued_callers_all_pile_into_the_next_window() {
    let (room, clock) = room();
    let fixed = Fixed::builder(3, secs(10)).build().unwrap();
    let mut callers: Vec<_> = (0..10).map(|_| Box::pin(room.acquire_within(&fixed, 1, secs(12)))).collect();
    let mut round = || {
        let answers: Vec<_> = callers.iter_mut().map(|caller| poll(caller.as_mut())).collect();
        let admitted = answers.iter().filter(|answer| matches!(answer, Some(Ok(_)))).count();
        let refused = answers.iter().flatten().filter(|answer| is_timeout(**answer)).count();
        let mut waiting = answers.iter().map(Option::is_none);
        callers.retain(|_| waiting.next().unwrap());
        (admitted, refused, callers.len())
    };
    assert_eq!(round(), (3, 0, 7));
    clock.advance(secs(9));
    assert_eq!(round(), (0, 0, 7));
    clock.advance(secs(1));
    assert_eq!(round(), (3, 4, 0));
}

#[test]
fn f031_one_more_than_the_burst_waits_for_ever() {
    let bucket = TokenBucket::builder(10, secs(1)).build().unwrap();
    let (room, clock) = room();
    let start = clock.now();
    let never = |answer| matches!(answer, Err(WaitError::Never(denied)) if denied.reason == Reason::Never);
    assert!(never(room.acquire_timeout(&bucket, 11, Duration::from_millis(100))));
    assert!(never(poll(pin!(room.acquire(&bucket, 11))).expect("at once")));
    assert_eq!((clock.now(), bucket.usage_at(0, start)), (start, Some(0)));
    assert!(room.acquire_timeout(&bucket, 10, Duration::from_millis(100)).is_ok());
}

#[test]
fn f050_a_cancelled_waiter_still_takes_its_token() {
    let (room, clock) = room();
    let bucket = Gcra::builder(1, secs(1)).burst(1).build().unwrap();
    assert!(bucket.try_acquire_at(1, clock.now()));
    let mut a = Box::pin(room.acquire(&bucket, 1));
    let mut b = Box::pin(room.acquire(&bucket, 1));
    assert!(poll(a.as_mut()).is_none() && poll(b.as_mut()).is_none());
    assert_eq!(room.waiters(), 2);
    clock.advance(Duration::from_millis(500));
    drop(a);
    assert_eq!((room.waiters(), poll(b.as_mut())), (1, None));
    clock.advance(Duration::from_millis(500));
    assert!(matches!(poll(b.as_mut()), Some(Ok(_))));
    assert_eq!((room.waiters(), bucket.usage_at(0, clock.now())), (0, Some(1)));
}

/// Sleeps half of what is asked, at least a moment: a timer may be early.
struct Light(Arc<Manual>);

impl Light {
    fn half(span: Duration) -> Duration {
        (span / 2).max(Duration::from_nanos(1))
    }
}

impl Timer for Light {
    fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send {
        Until(self.0.clone(), self.0.now() + Self::half(span).into())
    }
}

impl Block for Light {
    fn block(&self, span: Duration) {
        self.0.advance(Self::half(span));
    }
}

/// However often a waiter is woken in vain, it has one seat.
#[test]
fn a_waiter_that_wakes_early_keeps_its_one_seat() {
    let clock = Arc::new(Manual::at(Nanos::from_secs(1_000)));
    let room = Waiting::new(clock.clone(), Light(clock.clone())).waiters_max(1);
    let log = Log::builder(1, secs(10)).build().unwrap();
    assert!(log.try_acquire_at(1, clock.now()));
    assert!(room.acquire_timeout(&log, 1, secs(20)).is_ok());
    let mut waiter = pin!(room.acquire(&log, 1));
    let mut naps = 0;
    while poll(waiter.as_mut()).is_none_or(|answer| answer.is_err()) {
        assert_eq!(room.waiters(), 1);
        clock.advance(secs(1));
        naps += 1;
    }
    assert_eq!((naps, room.waiters(), clock.now()), (10, 0, Nanos::from_secs(1_020)));
}

/// A huge time-out means to wait long, never not to wait; a huge wait is no reason to panic.
#[test]
fn f055_the_largest_duration_as_a_time_out() {
    let longest: Duration = Nanos::MAX.into();
    let kinds: [Box<dyn Algorithm>; 6] = [
        Box::new(Log::builder(1, secs(10)).build().unwrap()),
        Box::new(Window::builder(1, secs(10)).build().unwrap()),
        Box::new(Gcra::builder(1, secs(10)).build().unwrap()),
        Box::new(TwoWindow::builder(1, secs(10)).build().unwrap()),
        Box::new(Fixed::builder(1, secs(10)).build().unwrap()),
        Box::new(Pacing::builder(1, secs(10)).build().unwrap()),
    ];
    for mut kind in kinds {
        for timeout in [Duration::MAX, Duration::from_nanos(u64::MAX), secs(300 * 365 * 86_400)] {
            let (room, clock) = room();
            let start = clock.now();
            kind.reset();
            while kind.try_acquire_at(1, clock.now()) {}
            assert!(room.acquire_timeout(&*kind, 1, timeout).is_ok());
            assert!(clock.now() > start && clock.now() <= start + Nanos::from_secs(20));
        }
    }
    // A permit that comes back after more than a century.
    let (room, clock) = room();
    let log = Log::builder(1, longest).build().unwrap();
    assert!(log.try_acquire_at(1, clock.now()));
    assert!(is_timeout(room.acquire_timeout(&log, 1, secs(1))));
    let mut waits = Box::pin(room.acquire_within(&log, 1, Duration::MAX));
    assert!(poll(waits.as_mut()).is_none());
}

#[test]
fn no_more_wait_than_may() {
    let (room, clock) = room();
    let room = room.waiters_max(2);
    let log = Log::builder(1, secs(10)).build().unwrap();
    assert!(matches!(poll(pin!(room.acquire(&log, 1))), Some(Ok(_))));
    let mut waiters = [0; 2].map(|_| Box::pin(room.acquire(&log, 1)));
    assert!(waiters.iter_mut().all(|waiter| poll(waiter.as_mut()).is_none()));
    assert_eq!(poll(pin!(room.acquire(&log, 1))), Some(Err(WaitError::Crowded { max: 2 })));
    // Who need not wait passes all the same.
    assert!(matches!(poll(pin!(room.acquire(&log, 0))), Some(Ok(_))));
    clock.advance(secs(10));
    assert!(matches!(poll(waiters[1].as_mut()), Some(Ok(_))));
    assert_eq!((poll(waiters[0].as_mut()), room.waiters()), (None, 1));
}

/// It ends at once if the permit comes after the time-out, and takes nothing.
#[test]
fn a_time_out_is_not_slept_through() {
    let (room, clock) = room();
    let log = Log::builder(1, secs(10)).build().unwrap();
    assert!(room.acquire_timeout(&log, 1, Duration::ZERO).is_ok());
    let start = clock.now();
    assert!(is_timeout(room.acquire_timeout(&log, 1, Duration::from_nanos(9_999_999_999))));
    assert_eq!((clock.now(), log.usage_at(0, start)), (start, Some(1)));
    assert!(room.acquire_timeout(&log, 1, secs(10)).is_ok());
    assert_eq!(clock.now(), start + Nanos::from_secs(10));
}

#[test]
fn jitter_spreads_and_keeps_the_deadline() {
    let mut spans = Vec::new();
    for _ in 0..100 {
        let (room, clock) = room();
        let room = room.jitter(secs(4));
        let (start, log) = (clock.now(), Log::builder(1, secs(10)).build().unwrap());
        assert!(log.try_acquire_at(1, start));
        assert!(room.acquire_timeout(&log, 1, secs(12)).is_ok());
        spans.push((clock.now() - start).as_nanos());
    }
    assert!(spans.iter().all(|span| (10_000_000_000..=12_000_000_000).contains(span)));
    spans.sort_unstable();
    assert!(
        spans.windows(2).filter(|pair| pair[0] < pair[1]).count() > 20
            && spans[99] - spans[0] > 1_000_000_000
    );
}

/// A limiter that judges ahead of the clock names waits that count from there.
#[test]
fn a_clock_that_stepped_back_makes_the_wait_longer() {
    let (room, clock) = room();
    let log = Log::builder(1, secs(10)).build().unwrap();
    assert!(log.try_acquire_at(1, clock.now() + Nanos::from_secs(5)));
    assert!(room.acquire_timeout(&log, 1, secs(100)).is_ok());
    assert_eq!(clock.now(), Nanos::from_secs(1_015));
}

#[test]
fn one_key_and_layers_can_be_waited_for() {
    let (room, clock) = room();
    let users = Keyed::<str>::builder(Log::builder(1, secs(10)).config().unwrap(), 10).build().unwrap();
    let global = Gcra::builder(1, secs(1)).burst(3).build().unwrap();
    let alice = users.of("alice");
    let both = tollgate::Layers::new([&global, &alice]);
    let start = clock.now();
    for turn in 0..3 {
        assert!(room.block_until_ready(&both).is_ok());
        assert_eq!(clock.now(), start + Nanos::from_secs(10 * turn));
    }
    assert!(users.of("bob").look_at(1, clock.now()).is_ok());
}

/// With real clocks: tokio's timer, and the thread's.
#[test]
fn real_timers_wake_in_time() {
    let bucket = Gcra::builder(100, secs(1)).burst(1).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let start = Instant::now();
    let room = Waiting::new(Precise::new(), Tokio).waiters_max(9);
    runtime.block_on(async {
        for _ in 0..4 {
            room.until_ready(&bucket).await.unwrap();
        }
    });
    let limiter = Limiter::new(bucket, Precise::new());
    let room = Waiting::new(limiter.clock(), Thread);
    for _ in 0..4 {
        room.block_until_ready(limiter.algorithm()).unwrap();
    }
    // Eight permits are seven intervals of 10 ms.
    assert!(start.elapsed() >= Duration::from_millis(70), "{:?}", start.elapsed());
}

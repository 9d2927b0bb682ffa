//! The limiter hands every question to its algorithm, at its clock's time.

use std::{sync::Arc, thread, time::Duration};

use tollgate::{Algorithm, Limiter, Log, Manual, Nanos, Reason};

const SECOND: Duration = Duration::from_secs(1);

fn limiter() -> Limiter<Log, Manual> {
    Limiter::new(
        Log::builder(10, SECOND).rule(4, SECOND / 10).build().unwrap(),
        Manual::at(Nanos::from_secs(5)),
    )
}

#[test]
fn every_answer_is_the_algorithms_at_the_clocks_time() {
    let limiter = limiter();
    let quota = limiter.check_n(3).unwrap();
    assert_eq!((quota.at, quota.rule, quota.remaining), (Nanos::from_secs(5), 1, 1));
    assert_eq!((limiter.usage(0), limiter.usage(1), limiter.usage(2)), (Some(3), Some(3), None));

    assert_eq!(limiter.peek(2).unwrap_err().retry_after(), Some(Nanos::from_millis(100)));
    assert!(!limiter.try_acquire_n(2));
    assert!(limiter.try_acquire_n(0));
    assert_eq!(limiter.usage(0), Some(3));
    assert!(limiter.try_acquire());

    let denied = limiter.check().unwrap_err();
    assert_eq!(denied.retry_after(), Some(Nanos::from_millis(100)));
    limiter.clock().advance(denied.retry_after().unwrap());
    assert!(limiter.check().is_ok());
    assert_eq!(limiter.peek(5).unwrap_err().reason, Reason::Never);
    assert_eq!(limiter.algorithm().rules().len(), 2);
}

#[test]
fn reset_forgets_the_admissions_and_not_the_time() {
    let mut limiter = limiter();
    assert!(limiter.try_acquire_n(4));
    assert!(!limiter.try_acquire());
    limiter.reset();
    assert_eq!(limiter.usage(0), Some(0));
    assert_eq!(limiter.check_n(4).unwrap().at, Nanos::from_secs(5));

    let (algorithm, clock) = limiter.into_parts();
    assert!(!algorithm.try_acquire_at(1, Nanos::from_secs(5)));
    clock.advance(SECOND);
    assert!(Limiter::new(algorithm, clock).try_acquire_n(4));
}

#[test]
fn a_boxed_algorithm_answers_like_the_algorithm() {
    let plain = Log::builder(3, SECOND).max_cost(2).build().unwrap();
    let bytes = plain.state_bytes();
    let boxed: Box<dyn Algorithm> = Box::new(plain);
    let mut limiter = Limiter::new(boxed, Manual::new());
    assert!(limiter.try_acquire_n(2));
    assert_eq!(limiter.check().unwrap().remaining, 0);
    assert_eq!(limiter.peek(1).unwrap_err().retry_after(), Some(SECOND.into()));
    assert_eq!(limiter.check_n(3).unwrap_err().reason, Reason::MaxCost { max: 2 });
    assert_eq!((limiter.usage(0), limiter.usage(1)), (Some(3), None));
    assert_eq!(limiter.algorithm().rules()[0].limit, 3);
    assert_eq!(limiter.algorithm().state_bytes(), bytes);
    limiter.reset();
    assert!(limiter.try_acquire_n(2));
}

#[test]
fn threads_share_one_limiter_and_one_limit() {
    let limiter = Arc::new(Limiter::new(Log::builder(1_000, SECOND).build().unwrap(), Manual::new()));
    let callers = [(); 4].map(|()| {
        let limiter = Arc::clone(&limiter);
        thread::spawn(move || (0..500).filter(|_| limiter.try_acquire()).count())
    });
    let admitted: usize = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    assert_eq!(admitted, 1_000);
}

#[cfg(feature = "std")]
#[test]
fn the_precise_clock_is_one_for_all_limiters() {
    let rules = || Log::builder(1, Duration::from_secs(3_600)).build().unwrap();
    let (one, other) = (Limiter::precise(rules()), Limiter::precise(rules()));
    let first = one.check().unwrap().at;
    thread::sleep(Duration::from_millis(20));
    let second = other.check().unwrap().at;
    assert!(second - first >= Nanos::from_millis(20), "{first:?} {second:?}");
    assert!(first > Nanos::ZERO && second < Nanos::from_secs(60));
    assert!(!one.try_acquire() && !other.try_acquire());
}

#[cfg(feature = "std")]
#[test]
fn limiters_and_guards_cross_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Limiter<Box<dyn Algorithm>, tollgate::Coarse>>();
    shared::<Limiter<Log, tollgate::Rebased<Manual>>>();
    shared::<tollgate::CoarseGuard>();
}

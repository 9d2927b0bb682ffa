//! Layers: one limit outside, perhaps a tenant's under it, two users' limits inside.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tollgate::{Algorithm, Layers, Log, Nanos};
use tollgate_check::{Call, Limiter, Scenario, Spec, Verdict, When, acquire};

use super::{Model, Subject};
use crate::{
    deep::{Asks, Noise},
    oracles::Asserts,
};

/// Longer than any scenario.
const WINDOW: Duration = Duration::from_nanos(1_000);

/// Layers whose calls say, in place of a cost, who asks and what for.
struct Stacked {
    outer: Log,
    tenant: Option<Log>,
    users: [Log; 2],
    /// Not seen by the model.
    told: Mutex<Told>,
}

/// What the users were answered.
#[derive(Default)]
struct Told {
    admitted: [u64; 2],
    /// Refusals of calls that were not alone: those may have lost a race.
    beaten: [u64; 2],
    asking: u64,
    asked: u64,
}

impl Stacked {
    /// User 0 asks at the call's time.
    const A: u64 = 1;
    /// User 1 asks at the call's time.
    const B: u64 = 2;
    /// No limit is ever ahead of those inside it.
    const WATCH: u64 = 3;
    /// When all is done: as many were admitted as the call's time says; what lost races cost is within its bound.
    const AUDIT: u64 = 4;
    /// As `AUDIT`, and no race was lost.
    const AUDIT_WHOLE: u64 = 5;
    /// As `AUDIT`, however many were admitted.
    const AUDIT_ANY: u64 = 6;

    fn new(outer: u64, tenant: Option<u64>, user: u64) -> Self {
        let log = |limit| Log::builder(limit, WINDOW).max_cost(1).build().expect("valid");
        let users = [log(user), log(user)];
        Self { outer: log(outer), tenant: tenant.map(log), users, told: Mutex::default() }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, user: usize, now: u64) {
        let (rivals, asked) = {
            let told = &mut *self.told();
            (told.asking, told.asked) = (told.asking + 1, told.asked + 1);
            (told.asking > 1, told.asked)
        };
        let (outer, inner, now) = (&self.outer, &self.users[user], Nanos::from_nanos(now));
        let admitted = match &self.tenant {
            None => Layers::new([outer, inner]).try_acquire_at(1, now),
            Some(tenant) => Layers::new([outer, tenant, inner]).try_acquire_at(1, now),
        };
        let told = &mut *self.told();
        told.asking -= 1;
        told.admitted[user] += u64::from(admitted);
        // Under loom a call may see old values of one that has returned: any may have lost.
        let beaten = !admitted && (cfg!(not(tollgate_shuttle)) || rivals || told.asked > asked);
        told.beaten[user] += u64::from(beaten);
    }

    /// Charged outside, to the tenant, and to the users: in this order, so that no charge inside is missed.
    fn charged(&self) -> (u64, Option<u64>, [u64; 2]) {
        // All calls are at times within one window.
        let used = |log: &Log| log.usage_at(0, Nanos::ZERO).expect("a rule");
        let (outer, tenant) = (used(&self.outer), self.tenant.as_ref().map(used));
        (outer, tenant, [used(&self.users[0]), used(&self.users[1])])
    }

    fn audit(&self, expected: Option<u64>, whole: bool) {
        let Told { admitted, beaten, .. } = *self.told();
        let (outer, tenant, users) = self.charged();
        let all = admitted.iter().sum::<u64>();
        assert_eq!((all, outer), (expected.unwrap_or(all), all), "admitted, and charged outside");
        for ((charged, admitted), beaten) in users.into_iter().zip(admitted).zip(beaten) {
            let lost = if whole { 0 } else { beaten };
            assert!(
                (admitted..=admitted + lost).contains(&charged),
                "{charged} charged, {admitted} admitted"
            );
        }
        let lost = users.iter().sum::<u64>() - all;
        assert!(
            tenant.is_none_or(|it| (all..=all + lost).contains(&it)),
            "{tenant:?} charged, {all} admitted"
        );
    }
}

impl Limiter for Stacked {
    fn try_acquire(&self, what: u64, now: u64) -> Verdict {
        match what {
            Self::A => self.ask(0, now),
            Self::B => self.ask(1, now),
            Self::WATCH => {
                let (outer, tenant, users) = self.charged();
                let inside = tenant.unwrap_or(outer);
                assert!(
                    outer <= inside && inside <= users.iter().sum(),
                    "{outer} charged outside, {tenant:?} to the tenant, {users:?} inside"
                );
            }
            Self::AUDIT_ANY => self.audit(None, false),
            _ => self.audit(Some(now), what == Self::AUDIT_WHOLE),
        }
        Verdict::Admitted
    }
}

fn subject(outer: u64, tenant: Option<u64>, user: u64) -> Subject {
    let middle = tenant.map_or(String::new(), |tenant| format!(" over {tenant}"));
    let make = move || Stacked::new(outer, tenant, user);
    Subject::new(format!("layers {outer}{middle} over {user}"), make, Spec::oracle(Asserts))
}

/// For generated scenarios.
pub(super) fn subjects() -> Vec<(Subject, Asks)> {
    let call = |noise: &mut Noise, _: Asks, now: When| {
        let cost = noise.pick(&[Stacked::A, Stacked::A, Stacked::B, Stacked::B, Stacked::WATCH]);
        Call::Acquire { cost, now }
    };
    let all = [(2, None, 2), (3, None, 2), (3, Some(2), 2), (2, Some(3), 2), (4, Some(3), 2)];
    let all = all.map(|(outer, tenant, user)| {
        let asks = Asks { call, audit: Some(Stacked::AUDIT_ANY), ..Asks::permits(3, 10) };
        (subject(outer, tenant, user), asks)
    });
    all.into()
}

pub(super) fn add(models: &mut Vec<Model>) {
    let subject = |outer, user| subject(outer, None, user);
    let (a, b) = (|now| acquire(Stacked::A, now), |now| acquire(Stacked::B, now));
    let (audit, whole) = (|n| acquire(Stacked::AUDIT, n), |n| acquire(Stacked::AUDIT_WHOLE, n));
    let last = |name| Scenario::new(name).thread([a(5)]).thread([b(5)]);
    models.extend([
        subject(1, 1).model(last("last outer permit").after([audit(1)])),
        // What the documentation says a lost race costs does happen.
        subject(1, 1).model(last("last outer permit, the race costs nothing").after([whole(1)])).documented(),
        subject(2, 1)
            .model(Scenario::new("last inner permit").thread([a(5)]).thread([a(6)]).after([whole(1)])),
        subject(1, 2)
            .model(Scenario::new("outer full").setup([a(5)]).thread([a(6)]).thread([b(6)]).after([whole(1)])),
        subject(2, 2).model(
            Scenario::new("inside out")
                .thread([a(5)])
                .thread([b(5)])
                .thread([acquire(Stacked::WATCH, 0)])
                .after([whole(2)]),
        ),
    ]);
}

//! Small worlds in which the number of instances changes: real [`Share`]s, every choice of who leaves or joins, every order
//! in which they see it, ask, and let time pass.
//!
//! # Checked in every state
//! | id | always |
//! |----|--------|
//! | M1 | no window holds more admissions of all instances together than [`change_bound`] says |
//! | M2 | some window holds just as many: the bound is not above what can happen |
//! | M3 | portions of one number of instances add up to the limit, and differ by one at most |

use std::{collections::HashSet, time::Duration};

use tollgate::Nanos;

use super::{Instances, change_bound, portion};
use crate::{Limiter, Share};

const WINDOW: u64 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Pass,
    Ask(usize),
    /// Sees the new number, begins, or ends.
    Change(usize),
}

/// An instance's place before and after; `None` while it is not there.
#[derive(Clone, Copy)]
struct Places {
    before: Option<u32>,
    after: Option<u32>,
}

/// What can be told of a world from outside: times of admissions by instance, who has changed, the tick.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct World {
    tick: u64,
    admitted: Vec<Vec<u64>>,
    changed: Vec<bool>,
}

struct Change {
    limit: u64,
    from: u32,
    to: u32,
    ticks: u64,
    who: Vec<Places>,
}

impl Change {
    /// A world after these steps, by real shares; `None` if the last of them does nothing.
    fn after(&self, steps: &[Step]) -> Option<World> {
        let shares: Vec<(Instances, Share)> = self.who.iter().map(|places| self.share(*places)).collect();
        let nobody = self.who.len();
        let mut world = World { tick: 0, admitted: vec![Vec::new(); nobody], changed: vec![false; nobody] };
        let mut done = true;
        for step in steps {
            done = match *step {
                Step::Pass => {
                    world.tick += 1;
                    true
                }
                Step::Change(who) => {
                    if let Some(place) = self.who[who].after {
                        shares[who].0.set(place, self.to).unwrap();
                    }
                    !std::mem::replace(&mut world.changed[who], true)
                }
                Step::Ask(who) => {
                    let Places { before, after } = self.who[who];
                    let there = if world.changed[who] { after } else { before }.is_some();
                    let now = Nanos::from_secs(100 + world.tick);
                    let admitted = there && shares[who].1.check_at("id", 1, now).decision.is_ok();
                    if admitted {
                        world.admitted[who].push(world.tick);
                    }
                    admitted
                }
            };
        }
        done.then_some(world)
    }

    fn share(&self, places: Places) -> (Instances, Share) {
        let instances = match places.before {
            Some(place) => Instances::new(place, self.from),
            None => Instances::new(places.after.unwrap_or(0), self.to),
        };
        let instances = instances.unwrap();
        let builder = Limiter::builder("api", self.limit, Duration::from_secs(WINDOW)).instances(&instances);
        (instances, builder.build_share().unwrap())
    }

    /// The most admissions in a window, over every world that can be.
    fn explore(&self) -> u64 {
        let (mut most, mut seen) = (0, HashSet::new());
        let mut open: Vec<Vec<Step>> = vec![Vec::new()];
        while let Some(path) = open.pop() {
            let who = 0..self.who.len();
            let steps = who.clone().map(Step::Ask).chain(who.map(Step::Change)).chain([Step::Pass]);
            for step in steps {
                let path = [path.as_slice(), &[step]].concat();
                let Some(world) = self.after(&path) else { continue };
                if world.tick > self.ticks || !seen.insert(world.clone()) {
                    continue;
                }
                for end in 0..=world.tick {
                    let inside =
                        world.admitted.iter().flatten().filter(|at| **at <= end && **at + WINDOW > end);
                    most = most.max(inside.count() as u64);
                }
                open.push(path);
            }
        }
        most
    }
}

/// The places of everybody when those in `gone` (a bit each) of the larger crowd are there only on its side of the change.
fn crowd(larger: u32, gone: u32, leaving: bool) -> Vec<Places> {
    let mut stayed = 0;
    (0..larger)
        .map(|place| {
            let stays = gone >> place & 1 == 0;
            let other = stays.then_some(stayed);
            stayed += u32::from(stays);
            if leaving {
                Places { before: Some(place), after: other }
            } else {
                Places { before: other, after: Some(place) }
            }
        })
        .collect()
}

#[test]
fn model_no_more_than_the_bound_while_instances_leave_or_join() {
    for (limit, smaller, larger, ticks) in [(2, 1, 2, 3), (3, 1, 2, 3), (2, 1, 3, 2), (4, 2, 3, 0)] {
        for (from, to) in [(smaller, larger), (larger, smaller)] {
            let bound = change_bound(limit, from, to);
            let choices = (0..1u32 << larger).filter(|gone| gone.count_ones() == larger - smaller);
            let most = choices
                .map(|gone| Change { limit, from, to, ticks, who: crowd(larger, gone, from > to) }.explore())
                .inspect(|most| assert!(*most <= bound, "M1: {most} of {limit}, {from} to {to}: {bound}"))
                .max();
            assert_eq!(most, Some(bound), "M2: {limit}, {from} to {to}");
        }
    }
}

#[test]
fn portions_add_up_to_the_limit() {
    for (limit, count) in (0..60).flat_map(|limit| (1..9).map(move |count| (limit, count))) {
        let portions: Vec<u64> = (0..count).map(|index| portion(limit, index, count)).collect();
        assert_eq!(portions.iter().sum::<u64>(), limit, "M3: {portions:?}");
        assert!(portions.is_sorted_by(|a, b| a >= b) && portions[0] - portions[count as usize - 1] <= 1);
    }
}

/// Twice the largest limit is more than a number holds.
#[test]
fn the_bound_of_the_largest_limit() {
    assert_eq!(change_bound(u64::MAX, 1, 1), u64::MAX);
    assert_eq!(change_bound(u64::MAX, 1, 2), u64::MAX);
    assert_eq!(change_bound(u64::MAX, 3, 2), u64::MAX);
}

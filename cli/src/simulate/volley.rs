//! Arrivals by the volley: bursts at fixed times, and attacks on the edges of fixed windows.

use std::cmp::Reverse;

use rand::RngExt;

use super::{Arrival, Chance, Kind, Sender};

/// Many arrivals at a time.
#[derive(Clone, Debug)]
pub(crate) struct Volley {
    pub(super) count: u64,
    /// Between bursts; the window that is attacked.
    pub(super) span: u64,
    pub(super) senders: u64,
    pub(super) pattern: Pattern,
}

/// When a volley's arrivals come.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// Within the first hundredth of each span.
    Burst,
    /// Around every other edge of windows that begin at multiples of the span since 1970: all in the last tenth before
    /// it, all again in the first tenth after it. Each sender's clock is off by up to this share of the span.
    EdgeAttack { jitter: f64 },
}

/// Volleys under way.
pub(crate) struct Volleys {
    volley: Volley,
    start: u64,
    end: u64,
    /// The next burst, or the next edge.
    next: u64,
    /// What is left of the volley made last, the latest first.
    ready: Vec<Arrival>,
    /// By sender: how far its clock is off, as a share of the span.
    off: Vec<f64>,
    chance: Chance,
}

// === impl Volleys ===

impl Volleys {
    pub(super) fn new(volley: Volley, start: u64, end: u64, mut chance: Chance) -> Self {
        let (next, off) = match volley.pattern {
            Pattern::Burst => (start, Vec::new()),
            Pattern::EdgeAttack { jitter } => {
                let senders = volley.senders.min(volley.count);
                let off = (0..senders).map(|_| chance.random_range(-jitter..=jitter)).collect();
                // The first edge after which a window has room before it.
                ((start / volley.span).saturating_add(1).saturating_mul(volley.span), off)
            }
        };
        Self { volley, start, end, next, ready: Vec::new(), off, chance }
    }

    /// Makes the volley that is next.
    fn make(&mut self) {
        let span = self.volley.span;
        match self.volley.pattern {
            Pattern::Burst => {
                for i in 0..self.volley.count {
                    let late = self.chance.random_range(0..=span / 100);
                    self.ready.push(self.arrival(i, self.next.saturating_add(late)));
                }
                self.next = self.next.saturating_add(span);
            }
            Pattern::EdgeAttack { .. } => {
                for (i, side) in (0..self.volley.count).flat_map(|i| [(i, -0.1), (i, 0.1)]) {
                    let off = self.off[(i % self.off.len() as u64) as usize];
                    let from_edge = self.chance.random::<f64>() * side + off;
                    let at = self.next.saturating_add_signed((from_edge * span as f64) as i64);
                    self.ready.push(self.arrival(i, at));
                }
                self.next = self.next.saturating_add(span.saturating_mul(2));
            }
        }
        let (start, end) = (self.start, self.end);
        self.ready.retain(|arrival| (start..end).contains(&arrival.at));
        self.ready.sort_by_key(|arrival| Reverse((arrival.at, arrival.sender)));
    }

    fn arrival(&self, i: u64, at: u64) -> Arrival {
        Arrival { at, sender: Sender { kind: Kind::Sender, number: i % self.volley.senders + 1 } }
    }
}

impl Iterator for Volleys {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.ready.pop() {
                return Some(arrival);
            }
            // An attack begins a little before its edge.
            if self.next >= self.end.saturating_add(self.volley.span) {
                return None;
            }
            self.make();
        }
    }
}

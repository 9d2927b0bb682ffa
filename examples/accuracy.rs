//! How far is a sliding-window counter from the exact log, for how many buckets and for what traffic?
//!
//! `cargo run --release --example accuracy` prints Markdown tables, the same in every run: the limiters are the
//! library's, what they admitted is judged afterwards against true windows. A range is over eight phases of the
//! bucket edges against the traffic.

use std::{collections::VecDeque, fmt, time::Duration};

use tollgate::{Algorithm, Coverage, Log, Nanos, Window};

const LIMIT: u64 = 100;
const WINDOW: u64 = 1_000_000_000;
const WINDOWS: u64 = 300;
const PHASES: u64 = 8;
const BUCKETS: [u64; 6] = [2, 5, 10, 20, 50, 100];

/// What is said of a counter with that many buckets: the error, in percent.
const FOLK: [(u64, f64); 6] = [(2, 50.0), (5, 20.0), (10, 10.0), (20, 5.0), (50, 2.0), (100, 1.0)];

/// Traffic: when calls come, for a counter with that many buckets and edges at zero.
struct Traffic {
    name: &'static str,
    text: &'static str,
    arrivals: fn(u64) -> Vec<u64>,
}

const TRAFFIC: [Traffic; 5] = [
    Traffic { name: "uniform", text: "Poisson arrivals at the limit's own rate", arrivals: |_| poisson(1) },
    Traffic { name: "flood", text: "Poisson arrivals at twenty times the limit", arrivals: |_| poisson(20) },
    Traffic {
        name: "bursty",
        text: "bursts of half the limit within a hundredth of the window, at random, at the limit's rate on average",
        arrivals: |_| bursts(),
    },
    Traffic {
        name: "late bursts",
        text: "the limit just before an edge, and again one window after that bucket's start: the worst for the \
               textbook form",
        arrivals: late_bursts,
    },
    Traffic {
        name: "early bursts",
        text: "the limit at every edge: the worst for the full form",
        arrivals: early_bursts,
    },
];

/// What one limiter did to one traffic.
#[derive(Clone, Copy)]
struct Outcome {
    /// The most above the limit in any true window, in percent of the limit.
    over: f64,
    /// Refusals while the true window had room, in percent of the calls.
    false_refusals: f64,
    /// Permits given, in percent of what the exact log gave.
    given: f64,
}

/// The least and the most over the phases.
#[derive(Clone, Copy)]
struct Range(f64, f64);

struct Row {
    over: Range,
    false_refusals: Range,
    given: Range,
}

// === traffic ===

/// An xorshift generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A span from the exponential distribution.
    fn exponential(&mut self, mean: u64) -> u64 {
        let unit = ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        (-unit.ln() * mean as f64) as u64
    }
}

fn poisson(load: u64) -> Vec<u64> {
    let (mut noise, mut now, mut arrivals) = (Noise(0x7011_6A7E), WINDOW, Vec::new());
    while now < WINDOWS * WINDOW {
        now += noise.exponential(WINDOW / (load * LIMIT));
        arrivals.push(now);
    }
    arrivals
}

fn bursts() -> Vec<u64> {
    let (mut noise, mut now, mut arrivals) = (Noise(0x7011_6A7E), WINDOW, Vec::new());
    while now < WINDOWS * WINDOW {
        now += noise.exponential(WINDOW / 2);
        arrivals.extend((0..LIMIT / 2).map(|_| now + noise.next() % (WINDOW / 100)));
    }
    arrivals.sort_unstable();
    arrivals
}

fn late_bursts(buckets: u64) -> Vec<u64> {
    let burst = |at: u64| (0..LIMIT).map(move |_| at);
    let pair = |start: u64| burst(start + WINDOW / buckets - 1).chain(burst(start + WINDOW));
    (1..WINDOWS).step_by(4).flat_map(|n| pair(n * WINDOW)).collect()
}

fn early_bursts(buckets: u64) -> Vec<u64> {
    (buckets..WINDOWS * buckets).flat_map(|n| (0..LIMIT).map(move |_| n * (WINDOW / buckets))).collect()
}

// === judgement ===

/// Passes the traffic through a limiter; how many it admitted, and the outcome next to so many of the exact log.
fn judge(limiter: &dyn Algorithm, arrivals: &[u64], exact: u64) -> (u64, Outcome) {
    let (mut admitted, mut peak, mut false_refusals) = (0, 0, 0_u64);
    let mut window = VecDeque::new();
    for &now in arrivals {
        while window.front().is_some_and(|&old| old + WINDOW <= now) {
            window.pop_front();
        }
        if limiter.try_acquire_at(1, Nanos::from_nanos(now)) {
            window.push_back(now);
            admitted += 1;
            peak = peak.max(window.len() as u64);
        } else {
            false_refusals += u64::from((window.len() as u64) < LIMIT);
        }
    }
    let outcome = Outcome {
        over: percent(peak.saturating_sub(LIMIT), LIMIT),
        false_refusals: percent(false_refusals, arrivals.len() as u64),
        given: percent(admitted, exact),
    };
    (admitted, outcome)
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn row(traffic: &Traffic, buckets: u64, coverage: Coverage) -> Row {
    let arrivals = (traffic.arrivals)(buckets);
    let window = Duration::from_nanos(WINDOW);
    let log = Log::builder(LIMIT, window).max_cost(1).build().expect("a valid log");
    let (exact, truth) = judge(&log, &arrivals, 0);
    assert_eq!((truth.over, truth.false_refusals), (0.0, 0.0), "the exact log is the truth");

    let outcomes: Vec<Outcome> = (0..PHASES)
        .map(|n| {
            let phase = Duration::from_nanos(n * (WINDOW / buckets) / PHASES);
            let builder = Window::builder(LIMIT, window).buckets(buckets).coverage(coverage).phase(phase);
            judge(&builder.build().expect("a valid counter"), &arrivals, exact).1
        })
        .collect();
    let range = |figure: fn(&Outcome) -> f64| {
        let figures = || outcomes.iter().map(figure);
        Range(figures().fold(f64::INFINITY, f64::min), figures().fold(0.0, f64::max))
    };
    let row = Row {
        over: range(|o| o.over),
        false_refusals: range(|o| o.false_refusals),
        given: range(|o| o.given),
    };
    // What the documentation promises of each coverage.
    match coverage {
        Coverage::Full => assert_eq!(row.over.1, 0.0, "full coverage went over the limit"),
        Coverage::Textbook => assert!(row.over.1 <= 100.0 && row.false_refusals.1 == 0.0),
    }
    row
}

// === output ===

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Range(least, most) = self;
        if format!("{least:.1}") == format!("{most:.1}") {
            write!(f, "{most:.1}")
        } else {
            write!(f, "{least:.1} - {most:.1}")
        }
    }
}

impl Row {
    /// The larger of what went over and what was withheld.
    fn error(&self) -> f64 {
        self.over.1.max(100.0 - self.given.0)
    }
}

fn main() {
    println!("Limit {LIMIT}, {WINDOWS} windows, {PHASES} phases; all figures in percent.");
    println!(
        "*over*: the most above the limit in any true window, of the limit. *false*: refusals while the true"
    );
    println!("window had room, of the calls. *given*: permits, of what the exact log gave.");
    println!("The full form never goes over; the textbook form never refuses falsely.\n");

    let mut errors = Vec::new();
    for traffic in &TRAFFIC {
        println!("**{}**: {}.\n", traffic.name, traffic.text);
        println!("| K | full: false | full: given | textbook: over | textbook: given |");
        println!("|--:|--:|--:|--:|--:|");
        for buckets in BUCKETS {
            let full = row(traffic, buckets, Coverage::Full);
            let textbook = row(traffic, buckets, Coverage::Textbook);
            let (late, over) = (full.false_refusals, textbook.over);
            println!("| {buckets} | {late} | {} | {over} | {} |", full.given, textbook.given);
            errors.push((traffic.name, buckets, full.error(), textbook.error()));
        }
        println!();
    }

    println!(
        "**Folk figures**: the largest error (over, or withheld) of full / textbook beside what is said.\n"
    );
    print!("| K | said |");
    TRAFFIC.iter().for_each(|traffic| print!(" {} |", traffic.name));
    println!(" holds for (full) | holds for (textbook) |\n|--:|--:|--:|--:|--:|--:|--:|:--|:--|");
    for (buckets, said) in FOLK {
        let errors = || errors.iter().filter(|&&(_, k, ..)| k == buckets);
        print!("| {buckets} | {said:.0} |");
        errors().for_each(|(.., full, textbook)| print!(" {full:.1} / {textbook:.1} |"));
        let list = |fits: &dyn Fn(f64, f64) -> bool| {
            let names: Vec<&str> = errors()
                .filter(|&&(.., full, textbook)| fits(full, textbook))
                .map(|&(name, ..)| name)
                .collect();
            match names.len() {
                0 => "none".to_owned(),
                all if all == TRAFFIC.len() => "all".to_owned(),
                _ => names.join(", "),
            }
        };
        println!(" {} | {} |", list(&|full, _| full <= said), list(&|_, textbook| textbook <= said));
    }
}

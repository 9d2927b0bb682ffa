//! From traffic to limits: what each window held, the smallest limit that refuses few enough, and what to take for it.
//!
//! # What
//! The first pass puts every request into a [`Load`] for each window, by key and for all keys together: from these,
//! everything about every limit is exact. The requests are spooled meanwhile. The second pass replays them through the
//! library's own limiters at the limits found: whom the log refuses, what the counter refuses with each number of
//! buckets, and what the pictures show.
//!
//! Few keys come near a limit that refuses few. A counter of K buckets looks back over K + 1 of them, less than
//! `window + window / K`; so a key that never has more than the limit within the widest of these is refused by no counter
//! and no log, and the second pass leaves it out.

mod choice;
pub(crate) mod figures;
pub(crate) mod html;
pub(crate) mod report;
mod snippet;
mod spool;

use self::{
    figures::{BucketError, Capacity, Effect, Limit, Peaks, Refused, Together, WindowPlan},
    spool::Spool,
};
use crate::{
    args::PlanJob,
    input::{self, KeySpec},
    keys::Keys,
    lineup::{Name, Settings, Unfit},
    load::Load,
    picture::{BucketRow, Buckets, Cdf, Occupancy, Panel, Series, Traffic},
    replay::{Replay, Stopped, Verdict},
    text,
    timeline::Timeline,
};

/// The most windows that can be asked for.
pub(crate) const WINDOWS_MAX: usize = 8;

/// The busiest keys that the picture of the windows shows, and those as busy as the last of them.
const SHOWN: usize = 64;

/// The limits looked at around the proposed one, in hundredths of it.
const AROUND: [u64; 8] = [50, 75, 90, 100, 110, 125, 150, 200];

/// The first pass.
pub(crate) struct Planner {
    keys: Keys,
    /// By window.
    loads: Vec<Loads>,
    spool: Spool,
    /// Whether every time so far is a whole second.
    whole_seconds: bool,
    span: Option<(u64, u64)>,
}

/// What stands in one length of window.
struct Loads {
    window: u64,
    by_key: Load,
    /// By key, as far back as the counter with the fewest buckets looks.
    wide: Load,
    /// All keys as one; `None` if there is but one.
    together: Option<Load>,
    /// The fullest window of any key, over time.
    fullest: Timeline,
}

/// The plan, and what its pictures show.
pub(crate) struct Plan {
    pub(crate) windows: Vec<WindowPlan>,
    pub(crate) keys: u64,
    pub(crate) span: Option<(u64, u64)>,
    /// Whether every time was a whole second, though a window is not much longer.
    pub(crate) coarse: bool,
    /// By window: the fullest window of any key, over time.
    pub(crate) fullest: Vec<Timeline>,
    /// The busiest first windows of the keys, in ascending order.
    peaks: Vec<u32>,
    show: Show,
}

/// What the pictures show beside the figures, of the first window.
struct Show {
    /// Admitted and refused by the log at the limit.
    traffic: Timeline,
    replay: Replay,
    /// By key: its place in the replay, if it is among the busiest.
    busiest: Vec<Option<u32>>,
    /// How many those are.
    keys: u64,
    occupancy: Vec<Series>,
}

/// One window's part of the second pass.
struct Trial {
    replay: Replay,
    /// By key: its place in the replay, if it comes near the limit.
    near: Vec<Option<u32>>,
    /// What each entry behind the log has.
    buckets: Vec<u64>,
}

/// Tries whether the limit that the capacity leaves in a window can be had; it can without a capacity.
///
/// # Errors
/// [`Unfit`] if the algorithm that the code would have does not take it.
pub(crate) fn try_capacity(job: &PlanJob, window: u64) -> Result<(), Unfit> {
    let Some(capacity) = job.capacity else { return Ok(()) };
    let limit = Capacity::new(capacity, job.headroom, window).limit;
    let buckets = choice::buckets_for_all(limit, window);
    let name = if buckets.is_some() { Name::Window } else { Name::Log };
    Settings::single(limit, window, buckets).build(name, 0).map(drop)
}

// === impl Planner ===

impl Planner {
    pub(crate) fn new(job: &PlanJob) -> Self {
        let one_key = matches!(job.input.key, KeySpec::None);
        let loads = |&window: &u64| Loads {
            window,
            by_key: Load::new(window),
            wide: Load::new(choice::widest(window)),
            together: (!one_key).then(|| Load::new(window)),
            fullest: Timeline::default(),
        };
        Self {
            keys: Keys::default(),
            loads: job.windows.iter().map(loads).collect(),
            spool: Spool::new(),
            whole_seconds: true,
            span: None,
        }
    }

    /// The next request, no older than the one before it.
    ///
    /// # Errors
    /// [`input::Error::Spill`] if it can not be kept for the second pass.
    pub(crate) fn take(&mut self, key: &[u8], at: u64) -> Result<(), input::Error> {
        let key = self.keys.place(key) as u32;
        for loads in &mut self.loads {
            let level = loads.by_key.take(key, at);
            loads.wide.take(key, at);
            loads.fullest.count(at, true, level);
            if let Some(together) = &mut loads.together {
                together.take(0, at);
            }
        }
        self.whole_seconds &= at.is_multiple_of(1_000_000_000);
        self.span = Some((self.span.map_or(at, |(first, _)| first), at));
        self.spool.push(key, at)
    }

    /// How many requests the second pass will go through.
    pub(crate) fn requests(&self) -> u64 {
        self.spool.len()
    }

    /// Goes through everything again, and makes the plan. `step` hears of every request.
    ///
    /// # Errors
    /// [`Stopped`] if a limiter could not be had; [`input::Error`] if the requests could not be read back.
    pub(crate) fn plan<E: From<input::Error> + From<Stopped>>(
        mut self,
        job: &PlanJob,
        pictures: bool,
        mut step: impl FnMut(),
    ) -> Result<Plan, E> {
        let mut limits: Vec<(Limit, Vec<u32>)> = Vec::new();
        let mut trials = Vec::new();
        for loads in &self.loads {
            let (limit, peaks) = loads.limit(job);
            trials.push(Trial::new(limit.proposed, loads)?);
            limits.push((limit, peaks));
        }
        let mut show = match (limits.first(), self.loads.first()) {
            (Some((limit, peaks)), Some(loads)) if pictures => Show::new(limit.proposed, peaks, loads),
            _ => Show::nothing(),
        };
        self.spool.replay::<E>(|key, at| {
            step();
            let key = key as usize;
            for (window, trial) in trials.iter_mut().enumerate() {
                let traffic = (window == 0).then_some(&mut show.traffic);
                trial.take(key, at, traffic)?;
            }
            show.take(key, at)?;
            Ok(())
        })?;
        for (window, trial) in trials.iter_mut().enumerate() {
            trial.flush((window == 0).then_some(&mut show.traffic))?;
        }
        show.flush()?;
        let mut windows = Vec::new();
        for ((loads, (limit, peaks)), trial) in self.loads.iter().zip(&limits).zip(&trials) {
            windows.push(self.window(job, loads, limit, peaks, trial));
        }
        let shortest = job.windows.iter().copied().min().unwrap_or(u64::MAX);
        Ok(Plan {
            windows,
            keys: self.keys.len() as u64,
            span: self.span,
            coarse: self.whole_seconds && self.span.is_some() && shortest < 10_000_000_000,
            peaks: limits.into_iter().next().map(|(_, peaks)| peaks).unwrap_or_default(),
            fullest: self.loads.into_iter().map(|loads| loads.fullest).collect(),
            show,
        })
    }

    /// All that is to be said of one window.
    fn window(
        &self,
        job: &PlanJob,
        loads: &Loads,
        limit: &Limit,
        peaks: &[u32],
        trial: &Trial,
    ) -> WindowPlan {
        let refused = |limit| loads.refused(limit, peaks);
        let mut around: Vec<u64> = AROUND
            .iter()
            .map(|part| (u128::from(limit.proposed) * u128::from(*part)).div_ceil(100) as u64)
            .collect();
        let told = Peaks::of(peaks);
        around.extend([told.p50, told.p90, told.p99, told.p999, told.max, limit.by_requests, limit.by_keys]);
        around.sort_unstable();
        around.dedup();
        let busiest =
            loads.by_key.peaks().iter().enumerate().max_by_key(|(place, peak)| (**peak, usize::MAX - place));
        let alone = |peak: u32| peaks.iter().rev().nth(1).is_some_and(|&next| next <= peak / 2);
        let outlier = busiest.filter(|(_, peak)| alone(**peak)).and_then(|(place, &peak)| {
            let next = peaks.iter().rev().nth(1).copied().map_or(0, u64::from);
            Some(figures::Outlier { key: self.keys.name(place)?, peak: u64::from(peak), next })
        });
        let outcomes = trial.replay.outcomes();
        let counter: Vec<BucketError> = trial
            .buckets
            .iter()
            .zip(&outcomes[1..])
            .map(|(&buckets, outcome)| BucketError {
                buckets,
                refused: outcome.phases.as_ref().map_or([outcome.refused; 2], |phases| phases.refused),
                bytes_per_key: outcome.bytes_per_key,
            })
            .collect();
        let all = loads.together.as_ref().unwrap_or(&loads.by_key);
        let together = job.capacity.map(|capacity| {
            let capacity = Capacity::new(capacity, job.headroom, loads.window);
            Together { limit: capacity.limit, refused_requests: all.refused(capacity.limit) }
        });
        let allowed = job.refuse_at_most.of(loads.by_key.requests());
        let choice = choice::choose(
            loads.window,
            allowed,
            outcomes[0].bytes_per_key,
            &counter,
            loads.by_key.alive().max(1),
        );
        let snippet = snippet::write(&snippet::Wanted {
            key: &job.input.key.to_string(),
            window: loads.window,
            limit: limit.proposed,
            together: together.as_ref().map(|together| together.limit),
            choice: &choice,
            alive: loads.by_key.alive().max(1),
        });
        WindowPlan {
            window_ns: loads.window,
            peaks: told,
            busiest_ends: (!peaks.is_empty()).then(|| text::rfc3339(loads.by_key.busiest_at())),
            together_peak: all.peak(),
            together_mean: self.mean(loads.window),
            keys_alive: loads.by_key.alive(),
            allowed,
            effects: around.iter().map(|&limit| Effect { limit, refused: refused(limit) }).collect(),
            refused: refused(limit.proposed),
            limit: *limit,
            outlier,
            // The one key of all has no name.
            refused_most: match loads.together {
                Some(_) => self.keys.most_refused(job.top, |place| trial.counts(place)),
                None => Vec::new(),
            },
            counter,
            together,
            choice,
            snippet,
        }
    }

    /// How many requests a window of this length holds on average; `None` if no time passed.
    fn mean(&self, window: u64) -> Option<f64> {
        let (first, last) = self.span.filter(|(first, last)| first < last)?;
        Some(self.requests() as f64 * window as f64 / (last - first) as f64)
    }
}

// === impl Loads ===

impl Loads {
    /// The smallest limit that refuses few enough, and the keys' peaks in ascending order.
    fn limit(&self, job: &PlanJob) -> (Limit, Vec<u32>) {
        let mut peaks = self.by_key.peaks().to_vec();
        peaks.sort_unstable();
        let requests = self.by_key.smallest(job.refuse_at_most.of(self.by_key.requests()));
        let spared = job.refuse_at_most.of(peaks.len() as u64) as usize;
        let keys = peaks.iter().rev().nth(spared).copied().map_or(0, u64::from);
        (Limit { proposed: requests.max(keys), by_requests: requests, by_keys: keys }, peaks)
    }

    /// What a limit refuses.
    fn refused(&self, limit: u64, peaks: &[u32]) -> Refused {
        Refused {
            requests: self.by_key.refused(limit),
            keys: (peaks.len() - peaks.partition_point(|&peak| u64::from(peak) <= limit)) as u64,
        }
    }
}

// === impl Trial ===

impl Trial {
    /// The log at this limit, then the counter with every number of buckets that divides the window and has room for
    /// the limit.
    fn new(limit: u64, loads: &Loads) -> Result<Self, Stopped> {
        let mut replay = Replay::new(true);
        let settings = |buckets| Settings::single(limit, loads.window, buckets);
        replay.add_counted(Name::Log, &settings(None)).map_err(|why| Stopped {
            name: Name::Log,
            why,
            made: 0,
        })?;
        let mut buckets = choice::ladder(loads.window);
        buckets.retain(|&count| replay.add_counted(Name::Window, &settings(Some(count))).is_ok());
        let near = numbered(loads.wide.peaks(), |peak| u64::from(peak) > limit);
        Ok(Self { replay, near, buckets })
    }

    /// The next request, and what the log says to it.
    fn take(&mut self, key: usize, at: u64, traffic: Option<&mut Timeline>) -> Result<(), Stopped> {
        match (self.near[key], traffic) {
            (Some(place), traffic) => self.replay.take(place as usize, at, &mut by_log(traffic)),
            (None, Some(traffic)) => {
                traffic.count(at, true, 0);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn flush(&mut self, traffic: Option<&mut Timeline>) -> Result<(), Stopped> {
        self.replay.flush(&mut by_log(traffic))
    }

    /// How often the log refused a key, and how often it asked; nothing is known of those that stay away from the
    /// limit but that they are never refused.
    fn counts(&self, key: usize) -> (u64, u64) {
        self.near[key].map_or((0, 0), |place| self.replay.counts(place as usize))
    }
}

/// Writes down what the log, the first entry, says.
fn by_log(mut traffic: Option<&mut Timeline>) -> impl FnMut(Verdict) {
    move |verdict| {
        if let Some(traffic) = traffic.as_deref_mut().filter(|_| verdict.entry == 0) {
            traffic.count(verdict.at, verdict.admitted, 0);
        }
    }
}

/// Numbers the keys whose peaks are wanted.
fn numbered(peaks: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<Option<u32>> {
    let mut places = 0..;
    peaks.iter().map(|&peak| if wanted(peak) { places.next() } else { None }).collect()
}

// === impl Show ===

impl Show {
    /// The busiest keys of the first window, before the algorithms of the picture; one that does not take the limit
    /// stays away.
    fn new(limit: u64, peaks: &[u32], loads: &Loads) -> Self {
        let mut show = Self::nothing();
        let preset = choice::preset(loads.window);
        let buckets = choice::ladder(loads.window).into_iter().find(|&buckets| buckets >= preset);
        let settings = Settings::single(limit, loads.window, buckets);
        for name in [Name::Log, Name::Window, Name::Fixed, Name::TwoWindow, Name::Token] {
            if show.replay.add(name, &settings).is_ok() {
                let name = match (name, buckets) {
                    (Name::Window, Some(buckets)) => format!("window ({buckets} buckets)"),
                    _ => name.to_string(),
                };
                show.occupancy.push(Series { name, timeline: Timeline::default() });
            }
        }
        let least = peaks.iter().rev().nth(SHOWN - 1).copied().unwrap_or(0);
        show.busiest = numbered(loads.by_key.peaks(), |peak| peak >= least);
        show.keys = show.busiest.iter().flatten().count() as u64;
        show
    }

    fn nothing() -> Self {
        Self {
            traffic: Timeline::default(),
            replay: Replay::new(true),
            busiest: Vec::new(),
            keys: 0,
            occupancy: Vec::new(),
        }
    }

    fn take(&mut self, key: usize, at: u64) -> Result<(), Stopped> {
        let Self { replay, busiest, occupancy, .. } = self;
        match busiest.get(key).copied().flatten() {
            Some(place) => replay.take(place as usize, at, &mut |verdict| film(occupancy, verdict)),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        let Self { replay, occupancy, .. } = self;
        replay.flush(&mut |verdict| film(occupancy, verdict))
    }
}

fn film(occupancy: &mut [Series], verdict: Verdict) {
    occupancy[verdict.entry].timeline.count(verdict.at, verdict.admitted, verdict.level);
}

// === impl Plan ===

impl Plan {
    /// Requests over time, admitted and refused by the log at the first limit.
    pub(crate) fn traffic(&self) -> &Timeline {
        &self.show.traffic
    }

    /// The pictures, of the first window.
    pub(crate) fn panels(&self) -> Vec<Box<dyn Panel + '_>> {
        let Some(first) = self.windows.first() else { return Vec::new() };
        let (limit, window_ns) = (first.limit.proposed, first.window_ns);
        let by = format!("log of {} per {}", text::grouped(limit), text::span(window_ns));
        let traffic = &self.show.traffic;
        let requests = traffic.bins().map(|(_, bin)| bin.requests()).sum();
        let rows = first.counter.iter().map(|row| BucketRow { buckets: row.buckets, refused: row.refused });
        let keys = (self.show.keys < self.keys).then_some(self.show.keys);
        vec![
            Box::new(Traffic { by, timeline: traffic }),
            Box::new(Cdf { window_ns, limit, peaks: self.peaks.clone() }),
            Box::new(Occupancy { limit, window_ns, keys, series: self.show.occupancy.clone() }),
            Box::new(Buckets {
                window_ns,
                limit,
                requests,
                exact: first.refused.requests,
                allowed: first.allowed,
                rows: rows.collect(),
            }),
        ]
    }
}

//! Rounds: every row once in each, so that what else the machine does strikes all alike.

use crate::machine::Stolen;

/// How often a row is tried in a round that something else on the machine spoils.
const TRIES: u32 = 6;

/// The figures of a row in one round.
pub(crate) struct Figure<const N: usize> {
    pub(crate) values: [f64; N],
    /// Whether a thread lost its processor meanwhile.
    pub(crate) disturbed: bool,
}

/// A row and what it measures.
pub(crate) struct Bench<L, const N: usize> {
    label: L,
    run: Box<dyn FnMut() -> Figure<N>>,
}

/// A row and its figures, round by round.
pub(crate) struct Series<L, const N: usize> {
    pub(crate) label: L,
    rounds: Vec<[f64; N]>,
}

/// All rows of a question, and how often a round was spoilt to the end.
pub(crate) struct Measured<L, const N: usize> {
    pub(crate) series: Vec<Series<L, N>>,
    pub(crate) retried: u64,
    pub(crate) spoilt: u64,
}

// === impl Bench ===

impl<L, const N: usize> Bench<L, N> {
    pub(crate) fn new(label: L, run: impl FnMut() -> Figure<N> + 'static) -> Self {
        Self { label, run: Box::new(run) }
    }
}

// === impl Measured ===

impl<L: PartialEq, const N: usize> Measured<L, N> {
    /// So many rounds of all rows. A row that was disturbed is tried again, as long as there are not more such tries
    /// than rows in all.
    pub(crate) fn rounds(rounds: usize, mut benches: Vec<Bench<L, N>>) -> Self {
        let mut figures = vec![Vec::with_capacity(rounds); benches.len()];
        let (mut retried, mut spoilt, most) = (0, 0, (rounds * benches.len()) as u64);
        for _ in 0..rounds {
            for (bench, figures) in benches.iter_mut().zip(&mut figures) {
                let mut tries = 1;
                figures.push(loop {
                    let before = Stolen::now();
                    let figure = (bench.run)();
                    let clean = !figure.disturbed && Stolen::now() == before;
                    if clean || tries == TRIES || retried == most {
                        spoilt += u64::from(!clean);
                        break figure.values;
                    }
                    retried += 1;
                    tries += 1;
                });
            }
        }
        let series =
            benches.into_iter().zip(figures).map(|(bench, rounds)| Series { label: bench.label, rounds });
        Self { series: series.collect(), retried, spoilt }
    }

    /// The row of a label.
    pub(crate) fn find(&self, label: &L) -> Option<&Series<L, N>> {
        self.series.iter().find(|series| series.label == *label)
    }

    /// The median of a row's first figure; not a number without the row.
    pub(crate) fn median(&self, label: &L) -> f64 {
        self.find(label).map_or(f64::NAN, |series| series.median(0))
    }

    /// The median of the rounds' ratios of two rows.
    pub(crate) fn ratio(&self, label: &L, floor: &L) -> f64 {
        match (self.find(label), self.find(floor)) {
            (Some(row), Some(floor)) => row.over(floor),
            _ => f64::NAN,
        }
    }

    /// The row of the least median among these.
    pub(crate) fn fastest(&self, labels: impl Iterator<Item = L>) -> Option<L> {
        let measured =
            labels.map(|label| (self.median(&label), label)).filter(|(median, _)| !median.is_nan());
        measured.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, label)| label)
    }

    /// How many tries were disturbed, for the report.
    pub(crate) fn disturbances(&self) -> String {
        let rounds: usize = self.series.iter().map(|series| series.rounds.len()).sum();
        let Self { retried, spoilt, .. } = self;
        format!(
            "{rounds} rounds of rows; {retried} more were disturbed and tried again, {spoilt} of those kept are disturbed."
        )
    }
}

// === impl Series ===

impl<L, const N: usize> Series<L, N> {
    /// The median of one of its figures.
    pub(crate) fn median(&self, figure: usize) -> f64 {
        median(self.rounds.iter().map(|round| round[figure]).collect())
    }

    /// The median of the rounds' ratios of the first figure to that of another row.
    pub(crate) fn over(&self, floor: &Self) -> f64 {
        median(self.rounds.iter().zip(&floor.rounds).map(|(row, floor)| row[0] / floor[0]).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

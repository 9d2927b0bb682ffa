//! Keys drawn at random, the same in every run.

/// Keys drawn before they come again in the same order.
const DRAWN: usize = 1 << 20;

/// Numbers without a pattern that matters here.
struct Random(u64);

impl Random {
    /// A number from 0 up to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Keys that are all as likely.
pub fn uniform(keys: u64) -> Vec<u64> {
    let mut random = Random(1);
    (0..DRAWN).map(|_| (random.next() * keys as f64) as u64).collect()
}

/// Keys of which the n-th is as likely as 1 / n.
pub fn zipf(keys: u64) -> Vec<u64> {
    let mut random = Random(1);
    let mut total = 0.0;
    let sums: Vec<f64> = (1..=keys)
        .map(|n| {
            total += 1.0 / n as f64;
            total
        })
        .collect();
    let mut draw = || {
        let drawn = random.next() * total;
        sums.partition_point(|&sum| sum <= drawn) as u64 % keys
    };
    (0..DRAWN).map(|_| draw()).collect()
}

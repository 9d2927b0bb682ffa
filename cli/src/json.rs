//! What a replay found, in the shape that `--json` prints. Names and meanings here are a promise to scripts.

use serde::Serialize;

/// Everything that a replay found.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) input: Input,
    /// The rules, the one of `--limit` and `--per` first.
    pub(crate) rules: Vec<Rule>,
    pub(crate) results: Vec<Outcome>,
    /// Algorithms that `all` could not take.
    pub(crate) left_out: Vec<LeftOut>,
    /// The keys that the first algorithm of `results` refused most; empty with `--key none`.
    pub(crate) top_refused: Vec<TopKey>,
}

/// What was read.
#[derive(Serialize)]
pub(crate) struct Input {
    pub(crate) files: Vec<String>,
    /// Lines read: `requests + skipped + filtered`.
    pub(crate) lines: u64,
    /// Lines used.
    pub(crate) requests: u64,
    /// Lines that could not be read.
    pub(crate) skipped: u64,
    /// Lines outside `--from` and `--to`.
    pub(crate) filtered: u64,
    /// Different keys.
    pub(crate) keys: u64,
    /// The earliest time used, RFC 3339; null without requests.
    pub(crate) first: Option<String>,
    /// The latest time used.
    pub(crate) last: Option<String>,
    /// `time` or `file`.
    pub(crate) order: String,
    /// Lines older than a line before them.
    pub(crate) out_of_order: u64,
    /// Lines without a zone, taken as UTC.
    pub(crate) zone_assumed: u64,
    /// The first few lines that could not be read.
    pub(crate) bad: Vec<BadLine>,
    /// Files that hold something else behind their compressed bytes, which was left alone.
    pub(crate) trailing_garbage: Vec<String>,
}

/// A line that could not be read.
#[derive(Serialize)]
pub(crate) struct BadLine {
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) why: String,
    pub(crate) text: String,
}

/// At most `limit` per key in any window.
#[derive(Serialize)]
pub(crate) struct Rule {
    pub(crate) limit: u64,
    pub(crate) window_ns: u64,
}

/// What one algorithm did.
#[derive(Serialize)]
pub(crate) struct Outcome {
    pub(crate) algorithm: &'static str,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// By rule.
    pub(crate) rules: Vec<Peak>,
    /// Refusals made while the key's own admissions in the true window left room.
    pub(crate) false_refusals: u64,
    /// Bytes of one limiter's state; the configuration, the same for every key, apart.
    pub(crate) bytes_per_key: u64,
    /// Time of one call of the library: the median of the means of batches. The only figure that differs from
    /// run to run.
    pub(crate) ns_per_check: f64,
    /// The paced queue only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<Waits>,
    /// The paced queue only: requests that found it full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drops: Option<u64>,
    /// Least and most over the places where the bucket edges may fall; only where there are edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phases: Option<Phases>,
}

/// The worst window of any key under one rule.
#[derive(Serialize)]
pub(crate) struct Peak {
    /// The largest number of one key admitted in any true window.
    pub(crate) peak: u64,
    /// By how much that is above the limit.
    pub(crate) over: u64,
}

/// How long the queue held what it let pass.
#[derive(Serialize)]
pub(crate) struct Waits {
    /// Half waited no longer; to three digits.
    pub(crate) p50_ns: u64,
    /// 99 in 100 waited no longer; to three digits.
    pub(crate) p99_ns: u64,
    /// None waited longer; exact.
    pub(crate) max_ns: u64,
}

/// Ranges `[least, most]` over the phases tried, the unshifted one of the main figures among them.
#[derive(Serialize)]
pub(crate) struct Phases {
    /// How many phases were tried.
    pub(crate) tried: u64,
    pub(crate) admitted: [u64; 2],
    pub(crate) refused: [u64; 2],
    /// By rule.
    pub(crate) over: Vec<[u64; 2]>,
    pub(crate) false_refusals: [u64; 2],
}

/// An algorithm that `all` could not take, and why.
#[derive(Serialize)]
pub(crate) struct LeftOut {
    pub(crate) algorithm: &'static str,
    pub(crate) why: String,
}

/// A key and how often it was refused.
#[derive(Serialize)]
pub(crate) struct TopKey {
    /// The key. One that is not UTF-8 has `\xHH` for each odd byte, and its backslashes doubled.
    pub(crate) key: String,
    pub(crate) refused: u64,
    pub(crate) requests: u64,
}

//! Without the model: real threads may find a fault, and say nothing of preemptions.
#![cfg(not(tollgate_loom))]

use tollgate_check::{Limiter, Property, Scenario, Spec, Verdict, acquire, check};

struct AdmitsAll;

impl Limiter for AdmitsAll {
    fn try_acquire(&self, _: u64, _: u64) -> Verdict {
        Verdict::Admitted
    }
}

#[test]
fn a_fault_is_found_by_real_threads() {
    let scenario = Scenario::new("two").thread([acquire(1, 0)]).thread([acquire(1, 0)]);
    let report = check(|| AdmitsAll, Spec::exact(&[(1, 10)])).scenario(scenario).run();
    assert_eq!(report.failures[0].property, Property::OverLimit);
    let text = report.to_string();
    assert!(text.contains("found by real threads, without the model") && !text.contains("needs"), "{text}");
}

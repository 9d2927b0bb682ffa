//! The reports of the examples are what their golden files say. `BLESS=1` writes them anew.
#![cfg(all(tollgate_loom, not(tollgate_shuttle)))]

use std::{fs, path::Path};

use tollgate_check::{Property, Report, sync::Ordering};

#[path = "../examples/check_then_act.rs"]
mod check_then_act;
#[path = "../examples/lap_ring.rs"]
mod lap_ring;
#[path = "../examples/packed_ring.rs"]
mod packed_ring;
#[path = "../examples/racing_reset.rs"]
mod racing_reset;
#[path = "../examples/sharded_counter.rs"]
mod sharded_counter;
#[path = "../examples/token_bucket.rs"]
mod token_bucket;

fn golden(name: &str, report: &Report) {
    println!("{report}");
    let text = report.without_times().to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{} has changed; is:\n{text}", path.display());
}

fn breaks(report: &Report) -> Vec<Property> {
    let mut broken: Vec<_> = report.failures.iter().map(|failure| failure.property).collect();
    broken.sort_by_key(|property| property.words());
    broken.dedup();
    broken
}

#[test]
fn a_check_then_act_log_admits_too_many() {
    let report = check_then_act::report();
    golden("check_then_act", &report);
    assert!(breaks(&report).contains(&Property::OverLimit));
}

#[test]
fn a_racing_reset_forgets_admissions() {
    let report = racing_reset::report();
    golden("racing_reset", &report);
    assert!(breaks(&report).contains(&Property::OverLimit));
}

#[test]
fn a_load_store_token_bucket_spends_a_token_twice() {
    let report = token_bucket::report();
    golden("token_bucket", &report);
    assert!(breaks(&report).contains(&Property::OverLimit));
}

#[test]
fn a_packed_head_and_count_do_not_save_the_slot() {
    let report = packed_ring::report();
    golden("packed_ring", &report);
    assert!(report.failed());
}

#[test]
fn shards_keep_the_limit_but_refuse_falsely() {
    let report = sharded_counter::report();
    golden("sharded_counter", &report);
    assert_eq!(breaks(&report), [Property::FalseRefusal]);
}

#[test]
fn a_ring_with_lap_parity_passes_and_its_orders_are_needed() {
    let report = lap_ring::checked().run();
    golden("lap_ring", &report);
    assert!(report.passed(), "{report}");
    let weakened = lap_ring::checked().bound(1).frozen(None).run_weakened();
    let survivors: Vec<_> = weakened.iter().filter(|(_, report)| !report.failed()).map(|(w, _)| w).collect();
    // An old newest entry shows the wrong parity (one two laps old would need a longer scenario), and nobody reads on
    // through what a CAS acquires.
    let orders: Vec<_> = survivors.iter().map(|weakening| weakening.to).collect();
    assert_eq!(
        orders,
        [Some(Ordering::Relaxed), Some(Ordering::Release), Some(Ordering::Release)],
        "{survivors:?}"
    );
}

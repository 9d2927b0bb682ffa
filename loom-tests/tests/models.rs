//! Without the model: every model on real threads for a moment, which shows that it can be built and that its calls
//! made one after the other are answered right. Under the model: the same as `ci/loom.sh run`, with one preemption.

use tollgate_models::{Options, run};

#[test]
fn every_model() {
    let options = Options { bound: 1, deep: false, processes: 1, ..Options::default() };
    if let Err(why) = run(&options) {
        panic!("{why}");
    }
}

//! A run on a thread of its own, which is left behind if it hangs. All threads of a model are one thread of the
//! system's: who blocks where the model does not see it blocks the others as well, for ever.

use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use super::{End, Job, Run};
use crate::trace;

/// How often to look whether there was an access.
const LOOK: Duration = Duration::from_secs(1);

/// Looks in a row that see none, after which a run hangs.
const LOOKS_MAX: u32 = 10;

/// Counts accesses and executions, seen from outside of the run.
pub(crate) type Pulse = Arc<AtomicU64>;

/// Does `run`, unless it hangs.
pub(super) fn watched(job: &Job, run: fn(&Job) -> Run) -> Run {
    let (pulse, job) = (Pulse::default(), job.clone());
    let (send, receive) = channel();
    let own = pulse.clone();
    let thread = thread::spawn(move || {
        trace::with(|ghost| ghost.pulse = own);
        // Who no longer listens has given this run up.
        let _ = send.send(run(&job));
    });
    let (mut seen, mut looks) = (0, 0);
    while looks < LOOKS_MAX {
        match receive.recv_timeout(LOOK) {
            Ok(run) => return run,
            Err(RecvTimeoutError::Timeout) => {
                let now = pulse.load(Relaxed);
                looks = if now == seen { looks + 1 } else { 0 };
                seen = now;
            }
            Err(RecvTimeoutError::Disconnected) => {
                resume_unwind(thread.join().expect_err("a run that sends nothing has panicked"))
            }
        }
    }
    let why = format!(
        "no atomic access for {LOOKS_MAX} s: a call blocks or loops where the checker does not see it, as in a lock of \
         std that is held across an access"
    );
    Run { executions: 0, given_up: 0, end: End::Hung(why), most: (0, 0), sites: vec![], frozen: false }
}

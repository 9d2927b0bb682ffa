//! counts: instructions of the server's for a check, by callgrind. Times depend on the machine and its other work; these
//! repeat within a few in a thousand, so the goals are asserted on them.

use std::time::Duration;

use redis::Script;
use tollgate::Rule;
use tollgate_redis_server::Server;

use crate::{
    Drive, HOUR, ask,
    asker::{KEPT, Kept},
    askers,
};

/// Scripts that do less than any limiter could: what no store can save.
const FLOORS: [(&str, &str); 2] = [
    ("an empty script", "return 1"),
    ("the time alone", "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] return 1"),
];

/// Instructions a call of a script that is not a limiter's.
async fn floor(script: &str, checks: u64) -> f64 {
    let server = Server::under_callgrind().await;
    let mut connection = server.connection().await;
    let script = Script::new(script);
    let mut run = async || script.key("key").invoke_async::<u64>(&mut connection).await.unwrap();
    assert_eq!(run().await, 1);
    let work = async {
        for _ in 0..checks {
            run().await;
        }
    };
    server.counted(work).await as f64 / checks as f64
}

/// Instructions a check.
async fn count(kept: Kept, window: Duration, how: Drive) -> f64 {
    let server = Server::under_callgrind().await;
    let rule = Rule::new(LIMIT, window);
    let mut callers = askers(&server, kept, rule, how).await;
    if how.admit {
        // Until every record takes the place of another.
        callers = ask(callers, Drive { checks: 12_000, ..how }).await.0;
    }
    let mut done = 0.0;
    let count = server.counted(async { done = ask(callers, how).await.1 }).await;
    count as f64 / done
}

const LIMIT: u64 = 10_000;

/// Instructions of an admission and of a refusal, and the goals.
pub(crate) async fn counts(full: bool) {
    let checks = if full { 4_000 } else { 1_600 };
    println!(
        "counts: instructions of the server's for a check, limit {LIMIT}, 16 in flight on one connection"
    );
    for (name, script) in FLOORS {
        println!("{:10} {name:16} {:8.0}", "", floor(script, checks as u64).await);
    }
    for (what, window, admit, goal) in
        [("admission", Duration::from_millis(100), true, 1.1), ("refusal", 720 * HOUR, false, 0.9)]
    {
        let how = Drive { units: 1, lanes: 16, pipelined: true, checks, admit };
        let mut textbook = None;
        for (name, kept) in KEPT {
            // The rest only when there is time.
            if !full && !matches!(name, "textbook set" | "ring") {
                continue;
            }
            let count = count(kept, window, how).await;
            let ratio = count / *textbook.get_or_insert(count);
            println!("{what:10} {name:16} {count:8.0}  {ratio:.2} x the textbook's");
            assert!(name != "ring" || ratio <= goal, "{what}: {ratio:.3} x the textbook's, above {goal}");
        }
    }
}

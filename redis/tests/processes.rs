//! Several processes, one limit: this program starts itself again, four times, beside a server of its own.

use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tollgate_redis::{Limiter, OnFailure, Store};
use tollgate_redis_server::Server;

const URL: &str = "TOLLGATE_TEST_URL";
const WORKERS: usize = 4;
/// Each worker asks so often for the small limit and for the large one.
const CALLS: [usize; 2] = [10, 2_000];
const LIMITS: [u64; 2] = [5, 3_000];

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match env::var(URL) {
        Ok(url) => runtime.block_on(work(&url)),
        Err(_) => {
            runtime.block_on(f067_four_processes_share_one_limit());
            println!("f067_four_processes_share_one_limit ... ok");
        }
    }
}

/// One process of a service: prints how much it got of each limit.
async fn work(url: &str) {
    let mut got = Vec::new();
    for (store, name) in [(Store::Ring, "ring"), (Store::Zset, "zset")] {
        for (limit, calls) in LIMITS.into_iter().zip(CALLS) {
            let client = redis::Client::open(url).unwrap();
            // The deadline is the limiter's; the client's own half a second would come before it on a busy machine.
            let config = ConnectionManagerConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
            let connection = ConnectionManager::new_with_config(client, config).await.unwrap();
            let limiter = Limiter::builder(format!("{name}{limit}"), limit, Duration::from_secs(600))
                .store(store)
                .deadline(Duration::from_secs(20))
                .on_failure(OnFailure::Closed)
                .build(connection)
                .unwrap();
            let mut admitted = 0;
            for _ in 0..calls {
                admitted += u64::from(limiter.try_acquire("a", 1).await.unwrap().admitted);
            }
            got.push(admitted.to_string());
        }
    }
    println!("{}", got.join(" "));
}

async fn f067_four_processes_share_one_limit() {
    let server = Server::start().await;
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let program = env::current_exe().unwrap();
            Command::new(program).env(URL, server.url()).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = workers.into_iter().map(|worker| worker.wait_with_output().unwrap()).collect();
    let mut totals = [0; 4];
    for output in outputs {
        assert!(output.status.success(), "a worker failed");
        let line = String::from_utf8(output.stdout).unwrap();
        for (total, got) in totals.iter_mut().zip(line.split_whitespace()) {
            *total += got.parse::<u64>().unwrap();
        }
    }
    assert_eq!(totals, [LIMITS[0], LIMITS[1], LIMITS[0], LIMITS[1]], "exactly the limit, over all processes");
}

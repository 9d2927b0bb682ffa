//! Three nodes on loopback: limits spread over them, scripts unknown to some of them, a node that falls silent.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tollgate_redis::{By, Failure, Limiter, OnFailure, cluster_client};

struct Node {
    child: Child,
    port: u16,
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that was killed by a test is no fault here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Cluster {
    nodes: Vec<Node>,
    _folder: TempDir,
}

/// A port that is free, with the one for the cluster's bus.
fn free_ports() -> (u16, u16) {
    let [one, two] = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    (one.local_addr().unwrap().port(), two.local_addr().unwrap().port())
}

async fn answers(port: u16) -> MultiplexedConnection {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
        if let Ok(connection) = client.get_multiplexed_async_connection().await {
            return connection;
        }
        assert!(Instant::now() < until, "no answer on port {port}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn ask<T: redis::FromRedisValue>(port: u16, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    command.query_async(&mut answers(port).await).await.unwrap()
}

impl Cluster {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = |index: usize| {
            let (port, bus) = free_ports();
            let dir = folder.path().join(index.to_string());
            std::fs::create_dir(&dir).unwrap();
            let child = Command::new("redis-server")
                .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--cluster-enabled", "yes"])
                .args([
                    "--cluster-node-timeout",
                    "60000",
                    "--port",
                    &port.to_string(),
                    "--cluster-port",
                    &bus.to_string(),
                ])
                .arg("--dir")
                .arg(dir)
                .stdout(Stdio::null())
                .spawn()
                .expect("redis-server starts: it is installed by ci/test.sh");
            (Node { child, port }, bus)
        };
        let nodes: Vec<(Node, u16)> = (0..3).map(node).collect();
        for (index, (node, _)) in nodes.iter().enumerate() {
            let (first, last) = (index * 16_384 / 3, (index + 1) * 16_384 / 3 - 1);
            let _: () =
                ask(node.port, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await;
            // Epochs of their own, so that no two nodes argue about a slot.
            let _: () = ask(node.port, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]).await;
        }
        for (node, bus) in &nodes[1..] {
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), &bus.to_string()];
            let _: () = ask(nodes[0].0.port, &meet).await;
        }
        let until = Instant::now() + Duration::from_secs(30);
        for (node, _) in &nodes {
            loop {
                let info: String = ask(node.port, &["CLUSTER", "INFO"]).await;
                if info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") {
                    break;
                }
                assert!(Instant::now() < until, "{info}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Self { nodes: nodes.into_iter().map(|(node, _)| node).collect(), _folder: folder }
    }

    fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("redis://127.0.0.1:{}/", node.port)).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_on_every_node_of_a_cluster() {
    let mut cluster = Cluster::start().await;
    let connect = async |urls| {
        let builder = cluster_client(urls).response_timeout(Duration::from_secs(20));
        builder.build().unwrap().get_async_connection().await.unwrap()
    };
    let builder = || {
        Limiter::builder("minute", 5, Duration::from_secs(60)).rule("hour", 50, Duration::from_secs(3_600))
    };
    let patient = || builder().deadline(Duration::from_secs(20)).on_failure(OnFailure::Closed);
    let limiter = patient().share_calls().build(connect(cluster.urls()).await).unwrap();
    limiter.verify().await.unwrap();

    // Each script is unknown to two of the nodes at first, and forgotten by one later.
    for id in 0..60 {
        if id == 30 {
            let _: () = ask(cluster.nodes[1].port, &["SCRIPT", "FLUSH"]).await;
        }
        let mut admitted = 0;
        for _ in 0..7 {
            admitted += usize::from(limiter.try_acquire(format!("user{id}"), 1).await.unwrap().admitted);
        }
        assert_eq!(admitted, 5, "user{id}");
    }
    for node in &cluster.nodes {
        let keys: Vec<String> = ask(node.port, &["KEYS", "*"]).await;
        assert!(keys.len() > 10, "node {} has {}", node.port, keys.len());
    }

    // A slot moves to another node: the old one says so, and the call is made there.
    let id = "user0";
    let slot: u64 =
        ask(cluster.nodes[0].port, &["CLUSTER", "KEYSLOT", &format!("tollgate:{{{id}}}:minute")]).await;
    limiter.reset(id).await.unwrap();
    let target: String = ask(cluster.nodes[2].port, &["CLUSTER", "MYID"]).await;
    for node in &cluster.nodes {
        let _: () = ask(node.port, &["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &target]).await;
    }
    let mut admitted = 0;
    for _ in 0..7 {
        admitted += usize::from(limiter.try_acquire(id, 1).await.unwrap().admitted);
    }
    assert_eq!(admitted, 5, "after the move");

    // A node dies: its ids fall back, the others do not notice.
    let impatient = builder().deadline(Duration::from_millis(300)).breaker(1_000, Duration::from_secs(1));
    let impatient = impatient.build(connect(cluster.urls()).await).unwrap();
    cluster.nodes[1].child.kill().unwrap();
    cluster.nodes[1].child.wait().unwrap();
    let (mut by_redis, mut by_itself) = (0, 0);
    for id in 100..130 {
        match impatient.try_acquire(format!("user{id}"), 1).await.unwrap().by {
            By::Redis => by_redis += 1,
            By::Local => by_itself += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(by_redis >= 8 && by_itself >= 3, "{by_redis} {by_itself} {:?}", impatient.stats());
    assert_eq!(impatient.stats().failed(Failure::Key), 0);
}

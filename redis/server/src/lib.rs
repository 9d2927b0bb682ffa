//! A redis-server for one test or benchmark: on a unix socket in a temporary folder, killed by its own id when dropped.
//! Every call panics when the server does not do as it should: this is for tests.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use tempfile::TempDir;

/// The server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: TempDir,
    options: Vec<&'static str>,
}

impl Server {
    /// On a socket of its own, with nothing in it and nothing on disk.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// With more options of the server's, as on its command line.
    pub async fn with(options: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = spawn("redis-server", &[], &folder, options);
        let server = Self { child, folder, options: options.to_vec() };
        server.wait().await;
        server
    }

    /// Under callgrind, which counts the instructions of what [`counted`](Server::counted) encloses.
    pub async fn under_callgrind() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("--callgrind-out-file={}", folder.path().join("counts").display());
        let callgrind = ["--tool=callgrind", "--instr-atstart=no", &file, "redis-server"];
        // Its own chores, ten times a second of a machine that is slowed down, would be counted too.
        let options = ["--hz", "1", "--dynamic-hz", "no"];
        let child = spawn("valgrind", &callgrind, &folder, &options);
        let server = Self { child, folder, options: options.to_vec() };
        server.wait().await;
        server
    }

    /// Instructions of the server's while `work` is done. Once for each server.
    pub async fn counted(&self, work: impl Future<Output = ()>) -> u64 {
        let control = |arguments: &[&str]| {
            let pid = self.child.id().to_string();
            let done = Command::new("callgrind_control").args(arguments).arg(pid).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        control(&["--instr=on"]);
        control(&["--zero"]);
        work.await;
        control(&["--dump"]);
        let counts = std::fs::read_to_string(self.folder.path().join("counts.1")).unwrap();
        let totals = counts.lines().find_map(|line| line.strip_prefix("totals: "));
        totals.expect("callgrind writes a line of totals").trim().parse().unwrap()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("r.sock")
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// A client of the `redis` crate.
    pub fn client(&self) -> Client {
        Client::open(self.url()).unwrap()
    }

    /// A connection that waits for an answer for 20 s.
    pub async fn connection(&self) -> MultiplexedConnection {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
        self.client().get_multiplexed_async_connection_with_config(&config).await.unwrap()
    }

    /// Runs one command on a connection of its own.
    pub async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(*word);
        }
        command.query_async(&mut self.connection().await).await.unwrap()
    }

    /// Stops the process where it stands; connections stay open and silent.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Ends the process at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same socket, with nothing in memory.
    pub async fn restart(&mut self) {
        self.child = spawn("redis-server", &[], &self.folder, &self.options);
        self.wait().await;
    }

    /// Keys that would never die.
    pub async fn immortal(&self) -> Vec<String> {
        let mut immortal = Vec::new();
        for key in self.ask::<Vec<String>>(&["KEYS", "*"]).await {
            // -1: no expiry; -2: gone meanwhile.
            if self.ask::<i64>(&["PTTL", &key]).await == -1 {
                immortal.push(key);
            }
        }
        immortal
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    async fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            if let Ok(mut connection) = self.client().get_multiplexed_async_connection().await
                && redis::cmd("PING").query_async::<String>(&mut connection).await.is_ok()
            {
                return;
            }
            assert!(Instant::now() < until, "redis-server does not answer on {}", self.url());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A stopped process dies of SIGKILL too; one that is dead already is no fault here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `program`, which is the server's or, with `before` its own arguments, one that runs it.
fn spawn(program: &str, before: &[&str], folder: &TempDir, options: &[&str]) -> Child {
    let path = folder.path();
    Command::new(program)
        .args(before)
        .args(["--port", "0", "--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(path.join("r.sock"))
        .arg("--dir")
        .arg(path)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}, which ci/test.sh installs, does not start: {error}"))
}

//! A network between client and server that can be slow, silent or cut.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::watch,
    task::JoinHandle,
};

/// What befalls the bytes.
#[derive(Default)]
struct Weather {
    /// Before each piece of a reply is handed on.
    delay_ms: AtomicU64,
    /// Replies are swallowed: the server works, and nobody hears of it.
    silent: AtomicBool,
    /// Connections end as soon as a reply is on its way: the call was run.
    cut_replies: AtomicBool,
}

pub(crate) struct Proxy {
    folder: TempDir,
    weather: Arc<Weather>,
    cut: watch::Sender<u64>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Before the server that listens on `to`.
    pub(crate) async fn before(to: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("p.sock")).unwrap();
        let weather = Arc::new(Weather::default());
        let (cut, cuts) = watch::channel(0);
        let shared = weather.clone();
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(client, to.clone(), shared.clone(), cuts.clone()));
            }
        });
        Self { folder, weather, cut, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("p.sock").display())
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.weather.delay_ms.store(delay.as_millis() as u64, Relaxed);
    }

    pub(crate) fn silence(&self, silent: bool) {
        self.weather.silent.store(silent, Relaxed);
    }

    /// Every connection ends when its next reply comes.
    pub(crate) fn cut_replies(&self, cut: bool) {
        self.weather.cut_replies.store(cut, Relaxed);
    }

    /// Ends every connection now.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|n| *n += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(client: UnixStream, to: PathBuf, weather: Arc<Weather>, mut cuts: watch::Receiver<u64>) {
    let Ok(server) = UnixStream::connect(to).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let requests = async { tokio::io::copy(&mut from_client, &mut to_server).await.map(|_| ()) };
    let replies = async {
        let mut piece = vec![0; 1 << 16];
        loop {
            let n = from_server.read(&mut piece).await?;
            if n == 0 || weather.cut_replies.load(Relaxed) {
                return Ok(());
            }
            let delay = weather.delay_ms.load(Relaxed);
            if delay > 0 {
                tokio::time::sleep(Duration::from_millis(delay)).await;
            }
            if !weather.silent.load(Relaxed) {
                to_client.write_all(&piece[..n]).await?;
            }
        }
    };
    cuts.mark_unchanged();
    // Whichever ends first ends the connection; how is of no interest to a network.
    let _: std::io::Result<()> = tokio::select! {
        done = requests => done,
        done = replies => done,
        _ = cuts.changed() => Ok(()),
    };
}

//! Runs a store's script by its hash, and hands it over whole when the server does not know it.
//!
//! # Never twice
//! A call is sent again after two answers only, both of which say that nothing ran: NOSCRIPT (then with the text, which
//! loads it for everybody) and MOVED (once, by the connection's renewed map of the cluster). After anything else, a lost
//! reply above all, nobody knows whether it ran: it is neither repeated nor taken back.

use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, aio::ConnectionLike, cmd};

/// The text of a script and its hash.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    text: &'static str,
    hash: String,
}

/// The two ways to ask for a script.
#[derive(Clone, Copy)]
enum By {
    Hash,
    Text,
}

// === impl Script ===

impl Script {
    pub(crate) fn new(text: &'static str) -> Self {
        Self { text, hash: redis::Script::new(text).get_hash().to_owned() }
    }

    /// Runs it once. `arguments` adds the number of keys, the keys and the arguments.
    pub(crate) async fn run<C: ConnectionLike, R: FromRedisValue>(
        &self,
        connection: &mut C,
        arguments: impl Fn(&mut Cmd),
    ) -> Result<R, RedisError> {
        let (mut by, mut moved) = (By::Hash, false);
        // Three rounds at most: each of the two reasons to go on is taken once.
        loop {
            match self.command(by, &arguments).query_async(connection).await {
                Err(error) if matches!(by, By::Hash) && is(&error, ServerErrorKind::NoScript) => {
                    by = By::Text
                }
                Err(error) if !moved && is(&error, ServerErrorKind::Moved) => moved = true,
                other => return other,
            }
        }
    }

    fn command(&self, by: By, arguments: &impl Fn(&mut Cmd)) -> Cmd {
        let mut command = match by {
            By::Hash => cmd("EVALSHA"),
            By::Text => cmd("EVAL"),
        };
        command.arg(match by {
            By::Hash => self.hash.as_str(),
            By::Text => self.text,
        });
        arguments(&mut command);
        command
    }
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

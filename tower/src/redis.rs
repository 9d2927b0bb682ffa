//! One limit for a cluster: a limiter of `tollgate-redis` decides.
//!
//! The inner service that was made ready is kept for the request while the server is asked, and a clone stands in its place,
//! which will be made ready for the next one.

use std::{
    borrow::Cow,
    fmt,
    net::IpAddr,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};
use redis::aio::ConnectionLike;
use tollgate::{Nanos, Quota, Rules};
use tollgate_redis::{Answer, By, Limiter};
use tower_service::Service;

use crate::{
    Builder, Cause, Either, Head, Key, Keyless, Limits, Names, NoKey, RateLimit, RateLimitLayer, Refusal,
    Reject,
    fields::Told,
    gate::{Gate, Judged},
    stats::Event,
    tier::Ruling,
};

/// A limit on a server, for each key.
///
/// What a client sees when the server is out of reach is what the limiter's `OnFailure` says and nothing else. *Open*: the
/// request passes. *Local*: this instance's portion decides. *Closed*: 503 with `Retry-After`. None of these answers has fields
/// that tell of limits. [`Stats::degraded`](crate::Stats) counts them, and a log line says when it begins and ends.
pub struct Redis<C, K> {
    limiter: Limiter<C>,
    key: K,
    names: Names,
    no_key: NoKey,
    /// Whether the last decision was one without the server.
    degraded: AtomicBool,
}

/// A key as bytes, by which a server knows it.
pub trait Id {
    /// The bytes; other bytes for every other key.
    fn id(&self) -> Cow<'_, [u8]>;
}

// === impl Id ===

impl Id for str {
    fn id(&self) -> Cow<'_, [u8]> {
        self.as_bytes().into()
    }
}

impl Id for String {
    fn id(&self) -> Cow<'_, [u8]> {
        self.as_bytes().into()
    }
}

impl Id for [u8] {
    fn id(&self) -> Cow<'_, [u8]> {
        self.into()
    }
}

impl Id for IpAddr {
    fn id(&self) -> Cow<'_, [u8]> {
        self.to_string().into_bytes().into()
    }
}

impl Id for u64 {
    fn id(&self) -> Cow<'_, [u8]> {
        self.to_string().into_bytes().into()
    }
}

impl<A: Id, B: Id> Id for Either<A, B> {
    fn id(&self) -> Cow<'_, [u8]> {
        let (kind, id) = match self {
            Self::First(first) => (b"1:", first.id()),
            Self::Second(second) => (b"2:", second.id()),
        };
        [kind, &*id].concat().into()
    }
}

// === impl Redis ===

impl<C, K: Key<Key: Id>> Redis<C, K> {
    /// By this key. A request without one is refused with 400, unless [`no_key`](Redis::no_key) tells otherwise.
    pub fn new(key: K, limiter: Limiter<C>) -> Self {
        let (names, no_key) = (Names::default(), NoKey::Refuse(StatusCode::BAD_REQUEST));
        Self { limiter, key, names, no_key, degraded: AtomicBool::new(false) }
    }

    /// Under this name; `default` by default.
    pub fn named(self, name: &str) -> Self {
        self.rules_named(&[name])
    }

    /// Under these names, one for each rule in its order.
    pub fn rules_named(mut self, names: &[&str]) -> Self {
        self.names = Names::new(names);
        self
    }

    /// What becomes of a request that has no key.
    pub fn no_key(mut self, then: NoKey) -> Self {
        self.no_key = then;
        self
    }

    /// The limiter.
    pub fn limiter(&self) -> &Limiter<C> {
        &self.limiter
    }
}

impl<C, K> fmt::Debug for Redis<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("limiter", &self.limiter).field("names", &self.names).finish()
    }
}

impl<C: Send + Sync, K: Send + Sync> Limits for Redis<C, K> {
    fn names(&self) -> Vec<&Names> {
        vec![&self.names]
    }
}

impl<C: Send + Sync, K: Key<Key: Id>> RateLimitLayer<Redis<C, K>> {
    /// Starts a layer with a limit on a server.
    pub fn redis(limits: Redis<C, K>) -> Builder<Redis<C, K>> {
        Builder::new(limits)
    }
}

// === impl Gate ===

impl<C, K, R> Gate<Redis<C, K>, R>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
    K: Key<Key: Id>,
{
    /// Notes whether a decision was made without the server that should have made it; a log line when that changes.
    fn note_degraded(&self, degraded: bool, why: &dyn fmt::Debug) {
        if degraded {
            self.counters.count(Event::Degraded);
        }
        if self.limits.degraded.swap(degraded, Relaxed) != degraded {
            if degraded {
                tracing::warn!(target: "tollgate", by = ?why, "limits are decided without their server");
            } else {
                tracing::warn!(target: "tollgate", "limits are decided by their server again");
            }
        }
    }

    /// What follows if nobody could decide.
    fn unavailable(&self, cost: u64, retry_after: Nanos) -> Judged<'_> {
        self.counters.count(Event::Unavailable);
        let (cause, status) = (Cause::Unavailable, StatusCode::SERVICE_UNAVAILABLE);
        let retry_after = Some(self.jittered(retry_after));
        self.refuse(Refusal { cause, status, policy: None, quota: None, cost, retry_after }, Told::default)
    }

    /// Asks the server for `cost` units of a key.
    async fn ask_server(&self, id: &[u8], cost: u64) -> Judged<'_> {
        let Redis { limiter, names, .. } = &self.limits;
        match limiter.check(id, cost).await {
            Ok(Answer { decision, by, .. }) => {
                self.note_degraded(matches!(by, By::Local | By::Open), &by);
                let limits = vec![(names, Some(Rules::of(&limiter.rules())))];
                // Others speak of other limits than the one that clients are told of.
                let figures = matches!(by, By::Redis | By::Cache | By::Lease | By::Rule);
                self.judge(cost, &Ruling { tier: 0, decision, limits }, figures)
            }
            Err(unavailable) => {
                self.note_degraded(true, &unavailable.failure);
                self.unavailable(cost, unavailable.retry_after)
            }
        }
    }
}

impl<S, C, K, R, B, O> Service<Request<B>> for RateLimit<S, Redis<C, K>, R>
where
    S: Service<Request<B>, Response = Response<O>, Future: Send> + Clone + Send + 'static,
    C: ConnectionLike + Clone + Send + Sync + 'static,
    K: Key<Key: Id> + 'static,
    R: Reject<O> + 'static,
    B: Send + 'static,
    O: 'static,
{
    type Response = Response<O>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<O>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gate = self.gate.clone();
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let head = Head::of(&request);
        let asked = gate.cost(&head).map(|cost| {
            let id = gate.limits.key.key(&head).map(|key| key.id().into_owned());
            (cost, id)
        });
        Box::pin(async move {
            let judged = match (asked, gate.limits.no_key) {
                (None, _) => Judged::Pass(Told::default()),
                (Some((cost, Some(id))), _) => gate.ask_server(&id, cost).await,
                (Some((cost, None)), NoKey::Refuse(status)) => gate.keyless(cost, Keyless { status }),
                (Some((cost, None)), NoKey::Admit) => {
                    let decision = Ok(Quota::new(u64::MAX, Nanos::ZERO));
                    gate.judge(cost, &Ruling { tier: 0, decision, limits: Vec::new() }, false)
                }
            };
            match judged {
                Judged::Pass(told) => {
                    let mut response = inner.call(request).await?;
                    told.put(response.headers_mut());
                    Ok(response)
                }
                Judged::Refuse(refusal, told) => Ok(gate.answer(&refusal, told)),
            }
        })
    }
}

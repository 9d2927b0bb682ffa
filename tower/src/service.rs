//! The service: asks, then hands on or answers.
//!
//! The limiter is asked inside `call`, so that a request which is let through goes straight to the service that was ready for
//! it: nothing is cloned and no future boxed. Whoever is refused never reaches it.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tollgate::Clock;
use tower_service::Service;

use crate::{
    Head, Limits, Local, Problem, Reject, Tiers,
    fields::Told,
    gate::{Gate, Judged},
};

/// A service behind limits: made by a [`RateLimitLayer`](crate::RateLimitLayer).
pub struct RateLimit<S, L, R = Problem> {
    pub(crate) inner: S,
    pub(crate) gate: Arc<Gate<L, R>>,
}

pin_project! {
    /// The answer of the service within, with fields added, or that of the layer.
    #[derive(Debug)]
    pub struct ResponseFuture<F, B> {
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StateProj]
    enum State<F, B> {
        Passed { #[pin] future: F, told: Option<Told> },
        Refused { response: Option<Response<B>> },
    }
}

// === impl RateLimit ===

impl<S: Clone, L, R> Clone for RateLimit<S, L, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), gate: self.gate.clone() }
    }
}

impl<S: fmt::Debug, L: Limits, R> fmt::Debug for RateLimit<S, L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).field("gate", &self.gate).finish()
    }
}

impl<S, T, C, R, B, O> Service<Request<B>> for RateLimit<S, Local<T, C>, R>
where
    S: Service<Request<B>, Response = Response<O>>,
    T: Tiers,
    C: Clock + Send + Sync,
    R: Reject<O>,
{
    type Response = Response<O>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, O>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let state = match self.gate.ask(&Head::of(&request)) {
            Judged::Pass(told) => State::Passed { future: self.inner.call(request), told: Some(told) },
            Judged::Refuse(refusal, told) => {
                State::Refused { response: Some(self.gate.answer(&refusal, told)) }
            }
        };
        ResponseFuture { state }
    }
}

// === impl ResponseFuture ===

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Passed { future, told } => {
                let mut response = ready!(future.poll(context))?;
                told.take().unwrap_or_default().put(response.headers_mut());
                Poll::Ready(Ok(response))
            }
            StateProj::Refused { response } => {
                Poll::Ready(Ok(response.take().expect("polled after it was ready")))
            }
        }
    }
}

//! What a refused client gets.

use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use tollgate::{Nanos, Quota};

use crate::{
    Policy,
    fields::{push, whole_seconds},
};

/// A request that is refused, for whoever writes the answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// Why.
    pub cause: Cause,
    /// The status that the answer should have.
    pub status: StatusCode,
    /// The limit that refused it; `None` if none was asked.
    pub policy: Option<Policy<'a>>,
    /// The figures of that limit.
    pub quota: Option<Quota>,
    /// What the request costs.
    pub cost: u64,
    /// Seconds until it is worth trying again, as `Retry-After` will say; `None` if it never is.
    pub retry_after: Option<u64>,
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A limit is reached.
    Limit,
    /// It costs more than the limit can ever give.
    Never,
    /// It has no key ([`NoKey::Refuse`](crate::NoKey)).
    NoKey,
    /// The limiter can not decide: its server is out of reach and the policy is *closed*, or its clock is out of range.
    Unavailable,
}

/// Writes the answer to a refused request: [`Problem`], [`BusinessCode`], [`Grpc`], or a closure
/// `|refusal: &Refusal<'_>| Response<B>`.
///
/// The layer adds `Retry-After`, `Cache-Control: no-store` and the fields that tell of limits.
pub trait Reject<B>: Send + Sync {
    /// The answer.
    fn reject(&self, refusal: &Refusal<'_>) -> Response<B>;
}

/// Problem details (RFC 9457), of the types in the draft that defines the `RateLimit` field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Problem;

/// `{"code":42901,"message":"..."}`, for clients that look into bodies. The status stays what it is: to answer 200 breaks
/// everybody who looks at that, see the crate's front page. Other causes than limits are answered by [`Problem`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusinessCode {
    body: String,
}

/// `RESOURCE_EXHAUSTED` with an empty body, for gRPC; `UNAVAILABLE` and `INVALID_ARGUMENT` where no limit was the cause. The
/// HTTP status is 200, as gRPC wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Grpc;

// === impl Refusal ===

impl Refusal<'_> {
    /// Why, in a sentence.
    pub fn detail(&self) -> String {
        let mut text = match (self.cause, self.policy) {
            (Cause::Limit, Some(Policy { rule, .. })) => {
                format!("Limit of {} requests per {} reached", rule.limit, span(rule.window))
            }
            (Cause::Limit, None) => "Limit reached".into(),
            (Cause::Never, _) => {
                let most = self.quota.map_or(0, |quota| quota.limit);
                format!("The request costs {}, which the limit of {most} can not give at any time", self.cost)
            }
            (Cause::NoKey, _) => "The request does not tell whom it is to be charged to".into(),
            (Cause::Unavailable, _) => "The limit can not be checked at the moment".into(),
        };
        if let Some(seconds) = self.retry_after {
            push(&mut text, format_args!("; retry in {seconds} s"));
        }
        text.push('.');
        text
    }
}

fn span(window: Nanos) -> String {
    match whole_seconds(window) {
        Some(seconds) => format!("{seconds} s"),
        None => format!("{:?}", std::time::Duration::from(window)),
    }
}

// === impl Reject ===

impl<B, F: Fn(&Refusal<'_>) -> Response<B> + Send + Sync> Reject<B> for F {
    fn reject(&self, refusal: &Refusal<'_>) -> Response<B> {
        self(refusal)
    }
}

fn answer<B>(status: StatusCode, content_type: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

// === impl Problem ===

impl<B: From<String>> Reject<B> for Problem {
    fn reject(&self, refusal: &Refusal<'_>) -> Response<B> {
        let kind = match refusal.cause {
            Cause::Limit | Cause::Never => "https://iana.org/assignments/http-problem-types#quota-exceeded",
            Cause::Unavailable => {
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
            }
            Cause::NoKey => "about:blank",
        };
        let status = refusal.status;
        let title = status.canonical_reason().unwrap_or("Refused");
        let (code, detail) = (status.as_u16(), refusal.detail());
        // Nothing in it needs an escape: names are checked for that, all else is ours.
        let mut body = format!(r#"{{"type":"{kind}","title":"{title}","status":{code},"detail":"{detail}""#);
        if let Some(policy) = refusal.policy {
            push(&mut body, format_args!(r#","violated-policies":["{}"]"#, policy.name));
        }
        body.push('}');
        answer(status, "application/problem+json", body.into())
    }
}

// === impl BusinessCode ===

impl BusinessCode {
    /// This code and message.
    pub fn new(code: u32, message: &str) -> Self {
        Self { body: format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)) }
    }
}

impl<B: From<String>> Reject<B> for BusinessCode {
    fn reject(&self, refusal: &Refusal<'_>) -> Response<B> {
        match refusal.cause {
            Cause::Limit | Cause::Never => {
                answer(refusal.status, "application/json", self.body.clone().into())
            }
            Cause::NoKey | Cause::Unavailable => Problem.reject(refusal),
        }
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => push(&mut json, format_args!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

// === impl Grpc ===

impl<B: Default> Reject<B> for Grpc {
    fn reject(&self, refusal: &Refusal<'_>) -> Response<B> {
        let code = match refusal.cause {
            Cause::Limit | Cause::Never => "8",
            Cause::Unavailable => "14",
            Cause::NoKey => "3",
        };
        let mut response = answer(StatusCode::OK, "application/grpc", B::default());
        let headers = response.headers_mut();
        headers.insert("grpc-status", HeaderValue::from_static(code));
        if let Ok(message) = HeaderValue::try_from(percent(&refusal.detail())) {
            headers.insert("grpc-message", message);
        }
        response
    }
}

/// As gRPC writes messages: what is not printable ASCII, and the percent sign, by its bytes.
fn percent(text: &str) -> String {
    let mut message = String::new();
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => message.push(char::from(byte)),
            _ => push(&mut message, format_args!("%{byte:02X}")),
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_json_are_escaped() {
        assert_eq!(quoted("a \"b\" \\ \n é"), r#""a \"b\" \\ \u000a é""#);
    }

    #[test]
    fn messages_of_grpc_are_escaped() {
        assert_eq!(percent("100 % of 1µs"), "100 %25 of 1%C2%B5s");
    }
}

//! Whom a request is charged to.
//!
//! A key is compared whole and belongs to one limit, so keys of two kinds ([`Or`]) never mix: a user who calls herself
//! `192.0.2.7` is not that address.

use std::{borrow::Cow, hash::Hash, net::IpAddr};

use http::HeaderName;
use tollgate::network_of;

use crate::Head;

/// Tells from a request's head whom it is charged to.
///
/// Closures are keys: `|head: &Head<'_>| Some(..)`, with `None` for a request that does not tell.
pub trait Key: Send + Sync {
    /// The key, in the form in which a [`Keyed`](tollgate::Keyed) is asked for it.
    type Key: ?Sized + ToOwned<Owned: Send + Sync> + Hash + Eq + Send + Sync;

    /// The key of a request; `None` if it has none.
    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, Self::Key>>;

    /// This key, else that one.
    fn or<K: Key>(self, other: K) -> Or<Self, K>
    where
        Self: Sized,
    {
        Or(self, other)
    }
}

/// The address of whoever opened the connection ([`Head::peer`]): of a proxy, if there is one. IPv4 whole, IPv6 by its network.
///
/// # Examples
/// ```
/// use tollgate_tower::{Head, Key, Peer, PeerIp};
///
/// let mut request = http::Request::new(());
/// assert_eq!(PeerIp::new().key(&Head::of(&request)), None);
///
/// request.extensions_mut().insert(Peer("[2001:db8:1:2:3:4:5:6]:4711".parse()?));
/// assert_eq!(PeerIp::new().key(&Head::of(&request)).unwrap().to_string(), "2001:db8:1:2::");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerIp {
    prefix: u32,
}

/// The value of a header field, such as a token's id that a gateway has checked.
///
/// A field that is sent twice, that is empty or longer than [`longest`](Header::longest), or that has other than visible
/// ASCII in it, is no key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    name: HeaderName,
    longest: usize,
}

/// A value that a layer outside this one has put into the request's extensions: an account, a tenant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension<T>(std::marker::PhantomData<fn() -> T>);

/// The route that the router matched ([`Head::route`]), whatever was spelled out in the path. Every path there is would be
/// a key of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route;

/// One key, by name, for all: what requests share that tell nobody ([`Key::or`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named(pub &'static str);

/// The first key, else the second: made by [`Key::or`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Or<A, B>(A, B);

/// A key of one of two kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Either<A, B> {
    /// Of the first.
    First(A),
    /// Of the second.
    Second(B),
}

/// How long a header field may be and still be a key.
const LONGEST: usize = 256;

// === impl Key ===

impl<F, K> Key for F
where
    F: Fn(&Head<'_>) -> Option<K> + Send + Sync,
    K: Hash + Eq + Clone + Send + Sync,
{
    type Key = K;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, K>> {
        self(head).map(Cow::Owned)
    }
}

// === impl PeerIp ===

impl PeerIp {
    /// Networks of 64 bits for IPv6: what one customer usually has.
    pub const fn new() -> Self {
        Self { prefix: 64 }
    }

    /// Networks of so many bits for IPv6; 128 are whole addresses.
    pub const fn ipv6_prefix(self, bits: u32) -> Self {
        Self { prefix: bits }
    }
}

impl Default for PeerIp {
    fn default() -> Self {
        Self::new()
    }
}

impl Key for PeerIp {
    type Key = IpAddr;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, IpAddr>> {
        head.peer().map(|peer| Cow::Owned(network_of(peer, self.prefix)))
    }
}

// === impl Header ===

impl Header {
    /// The field of that name. Lower case; panics otherwise, at compile time where it is a constant.
    pub const fn new(name: &'static str) -> Self {
        Self { name: HeaderName::from_static(name), longest: LONGEST }
    }

    /// The most bytes that the value may have; 256 by default. A key takes as much memory.
    pub const fn longest(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }
}

impl From<HeaderName> for Header {
    fn from(name: HeaderName) -> Self {
        Self { name, longest: LONGEST }
    }
}

impl Key for Header {
    type Key = str;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, str>> {
        let mut values = head.headers.get_all(&self.name).iter();
        let (first, second) = (values.next()?, values.next());
        let value = first.to_str().ok()?;
        (second.is_none() && (1..=self.longest).contains(&value.len())).then_some(Cow::Borrowed(value))
    }
}

// === impl Extension ===

impl<T> Extension<T> {
    /// The extension of this type.
    pub const fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<T> Default for Extension<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Hash + Eq + Clone + Send + Sync + 'static> Key for Extension<T> {
    type Key = T;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, T>> {
        head.extensions.get::<T>().map(Cow::Borrowed)
    }
}

// === impl Route ===

impl Key for Route {
    type Key = str;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, str>> {
        head.route().map(Cow::Borrowed)
    }
}

// === impl Named ===

impl Key for Named {
    type Key = str;

    fn key<'a>(&'a self, _: &Head<'a>) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self.0))
    }
}

// === impl Or ===

impl<A, B> Key for Or<A, B>
where
    A: Key<Key: ToOwned<Owned: Hash + Eq + Clone + Send + Sync>>,
    B: Key<Key: ToOwned<Owned: Hash + Eq + Clone + Send + Sync>>,
{
    type Key = Either<<A::Key as ToOwned>::Owned, <B::Key as ToOwned>::Owned>;

    fn key<'a>(&'a self, head: &Head<'a>) -> Option<Cow<'a, Self::Key>> {
        let first = self.0.key(head).map(|key| Either::First(key.into_owned()));
        let key = first.or_else(|| self.1.key(head).map(|key| Either::Second(key.into_owned())))?;
        Some(Cow::Owned(key))
    }
}

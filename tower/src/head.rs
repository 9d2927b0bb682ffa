//! What a limit sees of a request.

use std::net::{IpAddr, SocketAddr};

use http::{Extensions, HeaderMap, Method, Request, Uri, request::Parts};

/// The head of a request: all that keys, costs and filters may look at. The body is none of a limit's business.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target, as the layer sees it: a router may have stripped a prefix.
    pub uri: &'a Uri,
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// What servers and layers outside this one have noted.
    pub extensions: &'a Extensions,
}

/// The address of whoever opened the connection, noted in a request's extensions by a server that has no type of its own
/// for it.
///
/// # Examples
/// ```
/// use tollgate_tower::{Head, Peer};
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Peer("192.0.2.7:4711".parse()?));
/// assert_eq!(Head::of(&request).peer().unwrap().to_string(), "192.0.2.7");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer(pub SocketAddr);

// === impl Head ===

impl<'a> Head<'a> {
    /// The head of a request.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The address of whoever opened the connection: from [`Peer`] in the extensions, else, with the feature `axum`, from
    /// its `ConnectInfo<SocketAddr>`. `None` where nobody noted one, as on a Unix socket.
    pub fn peer(&self) -> Option<IpAddr> {
        let noted = self.extensions.get::<Peer>().map(|peer| peer.0);
        #[cfg(feature = "axum")]
        let noted = noted.or_else(|| {
            self.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>().map(|connection| connection.0)
        });
        noted.map(|address| address.ip())
    }

    /// The route that the router matched, such as `/users/{id}`: with the feature `axum`. `None` where there is none.
    pub fn route(&self) -> Option<&'a str> {
        #[cfg(feature = "axum")]
        return self.extensions.get::<axum::extract::MatchedPath>().map(|path| path.as_str());
        #[cfg(not(feature = "axum"))]
        None
    }
}

impl<'a> From<&'a Parts> for Head<'a> {
    fn from(parts: &'a Parts) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
        }
    }
}

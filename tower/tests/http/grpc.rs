//! A unary call of tonic.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
};

use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tollgate::{Keyed, Log};
use tollgate_tower::{By, Grpc, Head, Local, RateLimitLayer, Refusal, Reject};
use tonic::{
    Code, Request, Response, Status,
    body::Body,
    client,
    server::{self, NamedService, UnaryService},
    transport::{Channel, Server, server::TcpConnectInfo},
};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::support::{HOUR, Served};

type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Says hello.
#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "test.Greeter";
}

impl UnaryService<String> for Greeter {
    type Response = String;
    type Future = BoxFuture<Response<String>, Status>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        Box::pin(async move { Ok(Response::new(format!("hello {}", request.into_inner()))) })
    }
}

impl Service<http::Request<Body>> for Greeter {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<http::Response<Body>, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let codec = ProstCodec::<String, String>::default();
        Box::pin(async move { Ok(server::Grpc::new(codec).unary(Greeter, request).await) })
    }
}

async fn hello(client: &mut client::Grpc<Channel>) -> Result<Response<String>, Status> {
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/test.Greeter/Hello");
    client.unary(Request::new("you".to_owned()), path, ProstCodec::<String, String>::default()).await
}

type Limits<R> = RateLimitLayer<Local<By<fn(&Head<'_>) -> Option<IpAddr>>>, R>;

/// Three an hour for each peer, refused by `reject`.
fn three<R: Reject<Body>>(reject: R) -> Limits<R> {
    let by_peer: fn(&Head<'_>) -> Option<IpAddr> = |head| {
        let connection = head.extensions.get::<TcpConnectInfo>()?;
        connection.remote_addr().map(|address| address.ip())
    };
    let keyed = Keyed::builder(Log::builder(3, HOUR).config().unwrap(), 100).build().unwrap();
    RateLimitLayer::builder(By::new(by_peer, keyed)).reject(reject).build().unwrap()
}

/// A client of a server behind this layer, after three calls that were let through.
async fn used_up<R: Reject<Body> + 'static>(layer: &Limits<R>) -> (client::Grpc<Channel>, Served) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = Server::builder().layer(layer.clone()).add_service(Greeter).serve_with_incoming(incoming);
    let served = Served::by(address, tokio::spawn(async move { server.await.unwrap() }));

    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut client = client::Grpc::new(channel);
    for left in ["2", "1", "0"] {
        let answer = hello(&mut client).await.unwrap();
        assert_eq!(answer.get_ref(), "hello you");
        let told = answer.metadata().get("ratelimit").unwrap().to_str().unwrap();
        assert!(told.starts_with(&format!("\"default\";r={left};t=")), "{told}");
    }
    (client, served)
}

#[tokio::test]
async fn a_unary_call_is_refused_as_exhausted() {
    let layer = three(Grpc);
    let (mut client, _served) = used_up(&layer).await;
    let status = hello(&mut client).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "Limit of 3 requests per 3600 s reached; retry in 3600 s.");
    assert_eq!(status.metadata().get("retry-after").unwrap(), "3600");
    assert_eq!((layer.stats().admitted, layer.stats().refused_by_limits()), (3, 1));
}

#[tokio::test]
async fn a_bare_429_is_unavailable_to_a_client_of_grpc() {
    let bare = |refusal: &Refusal<'_>| {
        http::Response::builder().status(refusal.status).body(Body::default()).unwrap()
    };
    let (mut client, _served) = used_up(&three(bare)).await;
    assert_eq!(hello(&mut client).await.unwrap_err().code(), Code::Unavailable);
}

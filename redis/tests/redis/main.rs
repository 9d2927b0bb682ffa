//! Against real servers, started by the tests themselves on a socket in a temporary folder.

mod differential;
mod oracle;
mod server;
mod support;

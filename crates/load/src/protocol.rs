//! What goes over a connection: requests and answers of HTTP/1.1 and FastCGI, whole or in pieces, plain or through TLS.

pub(crate) mod answer;
pub(crate) mod chunked;
pub(crate) mod fastcgi;
pub(crate) mod gathered;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod tls;

//! The protocols: requests and answers of HTTP/1.1 and FastCGI, over plain connections or TLS.

pub(crate) mod answer;
pub(crate) mod certificates;
pub(crate) mod chunked;
pub(crate) mod completion;
pub(crate) mod fastcgi;
pub(crate) mod gathered;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod tls;

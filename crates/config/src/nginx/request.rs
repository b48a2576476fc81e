//! What nginx does with a request: the server and the location that answer, the ways to an upstream, and the request that the upstream gets.

pub(crate) mod own_answer;
pub(crate) mod reach;
pub(crate) mod route;
pub(crate) mod select;
pub(crate) mod upstream_request;

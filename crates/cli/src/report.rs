//! A diagnosis as a reader sees it: one view of it, shown as text, HTML and Markdown.

pub(crate) mod edge;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod plot;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod text;
pub(crate) mod view;

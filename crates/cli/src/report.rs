//! A diagnosis as a reader sees it: one view of it, shown as text, as a page and as Markdown.

pub(crate) mod edge;
pub(crate) mod markdown;
pub(crate) mod page;
pub(crate) mod plot;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod text;
pub(crate) mod view;

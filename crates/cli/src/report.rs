//! A diagnosis as a reader sees it: one view of it, shown as text, HTML and Markdown.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod plot;
pub(crate) mod text;
pub(crate) mod view;

//! Names of functions: symbol tables, debugging information, the kernel's symbols and perf maps.

pub(crate) mod demangle;
pub(crate) mod functions;
pub(crate) mod inline;
pub(crate) mod kallsyms;
pub(crate) mod names;
pub(crate) mod perf_map;

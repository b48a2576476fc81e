//! Cores that are busy with something else than requests.

mod busy_polling;
mod children;
mod taken;

//! Cores that are busy with something else than requests.

mod beside_others;
mod busy_polling;
mod children;
mod taken;

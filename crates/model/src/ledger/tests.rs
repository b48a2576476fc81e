//! The account over whole observations.

//! Lines of the servers' error logs: nginx's `error_log` and php-fpm's.

mod nginx;
mod php_fpm;

pub use nginx::{NginxEvent, NginxLine};
pub use php_fpm::{FpmEvent, FpmLine};

/// The longest line that is read. nginx cuts its lines at 2048 bytes, php-fpm at `log_limit`.
pub const LINE_BYTES_MAX: usize = 64 << 10;

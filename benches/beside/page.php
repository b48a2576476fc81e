<?php // A page for php-fpm and for PHP's own server.
usleep((int) (1e6 * (float) getenv('SECONDS')));
header('Content-Length: 3');
echo "ok\n";

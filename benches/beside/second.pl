#!/usr/bin/env perl
# Processes that serve one connection each until the client ends it, even if it asks to close it. Usage: second.pl PORT WORKERS SECONDS
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);

my ($port, $workers, $seconds) = @ARGV;
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 2048, ReuseAddr => 1) or die "$@";
for (2 .. $workers) { last unless fork }
while (1) {
    my $client = $listener->accept or next;
    setsockopt($client, IPPROTO_TCP, TCP_NODELAY, 1);
    my $asked = "";
    while (sysread($client, $asked, 4096, length $asked)) {
        next if index($asked, "\r\n\r\n") < 0;
        $asked = "";
        select(undef, undef, undef, $seconds);
        syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n");
    }
    close $client;
}

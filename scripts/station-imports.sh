#!/bin/sh
# Prints each import of one station by another as "FILE: STATION", including re-exports by stations.rs. The exit status is 1 if there are any.
# Stations depend on facts only: what two stations need belongs there.
set -eu
cd "$(dirname "$0")/../crates/model/src/judge/stations"
found=$(for file in $(find . -name '*.rs' | sort); do
    own=$(echo "$file" | cut -d/ -f2)
    perl -0777 -ne '
        BEGIN {
            $own = shift @ARGV;
            %station = map { s#/mod\.rs$##r => 1 } glob("*/mod.rs");
            open my $all, "<", "../stations.rs";
            my $text = <$all>;
            while ($text =~ /pub\(crate\) use (\w+)::(?:\{([^}]*)\}|(\w+))/g) {
                my ($from, $names) = ($1, $2 // $3);
                if ($station{$from}) { $handed_on{$_} = $from for $names =~ /\w+/g }
            }
        }
        s#//.*##g;
        while (/(?:crate::stations|super::super|super)::(\{[^}]*\}|\w+)/g) {
            for my $name ($1 =~ /\w+/g) {
                my $from = $station{$name} ? $name : $handed_on{$name};
                print "$ARGV: $from\n" if $from && $from ne $own && !$seen{"$from $name"}++;
            }
        }' "$own" "$file"
done)
test -z "$found" || { echo "$found"; exit 1; }

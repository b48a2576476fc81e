#!/bin/bash
# Builds a release below target/dist: a static program as .tar.gz and .deb with man pages, completions and documentation, its debug information, and checksums.
# Usage: packaging/dist.sh     (needs clang, binutils and dpkg-deb; no root)
#   MAINTAINER="NAME <ADDRESS>" stands in the .deb.
set -euo pipefail

cd "$(dirname "$0")/.."
cargo=scripts/cargo.sh
platform=x86_64-unknown-linux-gnu
# The largest program without debug information, bytes.
program_bytes_max=32000000
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer=${MAINTAINER:-chokepoint maintainers <maintainers@chokepoint.invalid>}
# Files have the time of the commit: the same source gives the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date -r CHANGELOG.md +%s)}
export SOURCE_DATE_EPOCH
target=${CARGO_TARGET_DIR:-target}
dist=$target/dist
name=chokepoint-$version-x86_64-linux
tree=$dist/$name
for tool in clang objcopy strip dpkg-deb; do
    command -v "$tool" >/dev/null || { echo "missing: $tool" >&2; exit 2; }
done
umask 022
rm -rf "$tree" "$dist/deb" "$dist/$name".* "$dist"/chokepoint_* "$dist/SHA256SUMS"
mkdir -p "$tree"

# With --target the flags are for the program alone: procedural macros cannot be linked statically. Packed relocations take 8 kB instead of 800. Of functions that are
# the same, as generic ones often are, one is kept, unless its address is compared. The whole program is optimised as one unit (LTO), which costs minutes and saves a fifth:
# only what is shipped is built so.
# No panic passes through C.
CARGO_PROFILE_RELEASE_LTO=fat \
CFLAGS_x86_64_unknown_linux_gnu="-fno-asynchronous-unwind-tables -fno-unwind-tables" \
RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,--icf=safe" "$cargo" build --release --target "$platform" --package chokepoint --features chokepoint/bpf
built=$target/$platform/release/chokepoint
objcopy --only-keep-debug --compress-debug-sections "$built" "$dist/$name.debug"
chmod 0644 "$dist/$name.debug"
strip --strip-all --remove-section=.comment -o "$tree/chokepoint" "$built"
objcopy --add-gnu-debuglink="$dist/$name.debug" "$tree/chokepoint"
bytes=$(stat -c %s "$tree/chokepoint")
[ "$bytes" -le "$program_bytes_max" ] || { echo "the program has $bytes bytes, more than $program_bytes_max" >&2; exit 1; }
"$tree/chokepoint" --version | grep -qF "chokepoint $version"

"$cargo" run --quiet --package chokepoint-packaging -- pages --date "$(date --utc --date="@$SOURCE_DATE_EPOCH" +%F)" "$tree"
cp README.md CHANGELOG.md SECURITY.md ARCHITECTURE.md CONTRIBUTING.md LICENSE "$tree"
cp -r docs "$tree"
rm -f "$tree/docs/scoreboard.json"
# Alert rules and a dashboard; the unit and its settings.
cp -r packaging/monitoring packaging/systemd "$tree"

# The licenses of the libraries in the program and its page: a list, then the texts.
third_party() {
    local list crate number license folder text
    list=$("$cargo" tree --package chokepoint --features bpf --edges normal --target "$platform" --prefix none --format '{p}|{l}' |
        grep -v -e "($PWD" -e '(proc-macro)' | sed 's/ (\*)//' | sort -u)
    echo "The libraries in the program chokepoint $version and their licenses. Their texts follow, each under the name of its library."
    echo
    echo "$list" | tr '|' ' '
    while IFS=' |' read -r crate number license; do
        for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate-${number#v}"; do
            for text in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/NOTICE*; do
                [ ! -f "$text" ] || { printf '\n===== %s %s, %s: %s\n\n' "$crate" "$number" "$license" "${text##*/}"; cat "$text"; }
            done
        done
    done <<<"$list"
    echo
    cat crates/dashboard/page/LICENSES
}
third_party >"$tree/THIRD-PARTY.txt"
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
tar --create --sort=name --owner=0 --group=0 --numeric-owner --format=ustar --directory "$dist" "$name" | gzip --no-name --best >"$dist/$name.tar.gz"

# Where Debian keeps each of these (Debian Policy 12; dh_bash-completion(1), and the folders for vendors of zsh and fish).
deb=$dist/deb
documents=$deb/usr/share/doc/chokepoint
install -D --mode=0755 "$tree/chokepoint" "$deb/usr/bin/chokepoint"
install -D --mode=0644 "$tree/completions/chokepoint.bash" "$deb/usr/share/bash-completion/completions/chokepoint"
install -D --mode=0644 "$tree/completions/_chokepoint" "$deb/usr/share/zsh/vendor-completions/_chokepoint"
install -D --mode=0644 "$tree/completions/chokepoint.fish" "$deb/usr/share/fish/vendor_completions.d/chokepoint.fish"
install -D --mode=0644 packaging/systemd/chokepoint-watch.service "$deb/lib/systemd/system/chokepoint-watch.service"
install -D --mode=0644 packaging/systemd/watch.toml "$deb/etc/chokepoint/watch.toml"
install -D --mode=0644 packaging/debian/lintian-overrides "$deb/usr/share/lintian/overrides/chokepoint"
mkdir -p "$deb/usr/share/man/man1" "$documents" "$deb/DEBIAN"
for page in "$tree"/man/*.1; do
    gzip --no-name --best <"$page" >"$deb/usr/share/man/man1/${page##*/}.gz"
done
install -D --mode=0644 --target-directory="$documents/systemd" packaging/systemd/*.conf
cp -r "$tree/docs" "$tree/monitoring" "$tree"/{README,SECURITY,ARCHITECTURE,CONTRIBUTING}.md "$tree/THIRD-PARTY.txt" "$documents"
gzip --no-name --best "$documents/THIRD-PARTY.txt"
# The changelog for readers is linked from documents by its name; Debian's, a line, is in the format that apt reads.
gzip --no-name --best <CHANGELOG.md >"$documents/CHANGELOG.md.gz"
printf 'chokepoint (%s) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what is new.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")" | gzip --no-name --best >"$documents/changelog.gz"
cp packaging/debian/copyright "$documents/copyright"
sed -e "s/@VERSION@/$version/" -e "s/@MAINTAINER@/$maintainer/" -e "s/@SIZE_KB@/$(du --summarize --apparent-size --block-size=1024 "$deb/usr" | cut -f1)/" \
    packaging/debian/control.in >"$deb/DEBIAN/control"
echo /etc/chokepoint/watch.toml >"$deb/DEBIAN/conffiles"
(cd "$deb" && find usr lib etc -type f -print0 | sort --zero-terminated | xargs --null md5sum >DEBIAN/md5sums)
find "$deb" -type d -exec chmod 0755 {} +
find "$deb" -type f ! -path '*/bin/*' -exec chmod 0644 {} +
# What dpkg runs for the service, and at a purge.
install --mode=0755 packaging/debian/{postinst,prerm,postrm} "$deb/DEBIAN"
find "$deb" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --build --root-owner-group -Zxz "$deb" "$dist/chokepoint_${version}_amd64.deb" >/dev/null

(cd "$dist" && sha256sum -- *.tar.gz *.deb *.debug >SHA256SUMS)
echo "the program has $((bytes / 1000)) kB; in $dist:"
(cd "$dist" && stat -c '  %s bytes  %n' -- *.tar.gz *.deb *.debug SHA256SUMS)

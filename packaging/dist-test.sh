#!/bin/bash
# Tests the packages of packaging/dist.sh as a new user would: lintian, then in a bare Debian made with debootstrap, in namespaces of its own, the .deb is installed,
# nginx is started with its default page, diagnosed, and the package removed; its settings survive an upgrade and a removal, and a purge leaves nothing. The bare Debian is kept in target/dist-root for the next run.
# Usage: packaging/dist-test.sh     (as root; needs debootstrap, lintian and a Debian mirror: MIRROR=http://deb.debian.org/debian)
set -euo pipefail

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
dist=$target/dist
base=$target/dist-root
suite=bookworm
mirror=${MIRROR:-http://deb.debian.org/debian}
# The most lines of a report without fixes.
report_lines_max=25
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
package=$dist/chokepoint_${version}_amd64.deb
[ -f "$package" ] || { echo "no $package: run packaging/dist.sh first" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "chroot and namespaces take root" >&2; exit 2; }
for tool in debootstrap lintian unshare; do
    command -v "$tool" >/dev/null || { echo "missing: $tool" >&2; exit 2; }
done
step() { printf '%s\n' "-- $*"; }

step "checksums and lintian"
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)
lintian --allow-root --fail-on error --tag-display-limit 0 "$package"

step "the archive"
root=$(mktemp -d "${TMPDIR:-/tmp}/chokepoint-dist.XXXXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
tar -xzf "$dist/chokepoint-$version-x86_64-linux.tar.gz" -C "$root"
archive=$root/chokepoint-$version-x86_64-linux
env -i "$archive/chokepoint" --version
for file in LICENSE README.md THIRD-PARTY.txt man/chokepoint-diagnose.1 completions/{chokepoint.bash,_chokepoint,chokepoint.fish} \
    monitoring/{alerts.yml,grafana.json} systemd/{chokepoint-watch.service,containers.conf,kernel.conf,watch.toml}; do
    [ -s "$archive/$file" ] || { echo "the archive lacks $file" >&2; exit 1; }
done

if [ ! -f "$base/complete" ]; then
    step "a bare Debian with nginx (once, some minutes)"
    rm -rf --one-file-system "$base"
    debootstrap --variant=minbase "$suite" "$base" "$mirror" >"$target/dist-root.log" 2>&1 || { tail -n 5 "$target/dist-root.log" >&2; exit 1; }
    printf '#!/bin/sh\nexit 101\n' >"$base/usr/sbin/policy-rc.d"
    chmod 0755 "$base/usr/sbin/policy-rc.d"
    cp /etc/resolv.conf "$base/etc/resolv.conf"
    DEBIAN_FRONTEND=noninteractive chroot "$base" apt-get --quiet --quiet --yes --no-install-recommends install nginx-light >>"$target/dist-root.log" 2>&1
    touch "$base/complete"
fi
rm -rf "$archive"
cp --archive "$base/." "$root"
cp "$package" "$root/chokepoint.deb"
# debootstrap leaves it to the installer.
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"

step "install, diagnose, remove"
# It runs in the bare Debian.
cat >"$root/new-user.sh" <<'END'
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
trap 'nginx -s quit 2>/dev/null || true' EXIT
found() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \) -prune -o -name '*chokepoint*' -print | sort; }
found >/before
dpkg --install /chokepoint.deb
chokepoint --version
for file in /usr/share/man/man1/chokepoint.1.gz /usr/share/man/man1/chokepoint-diagnose.1.gz /usr/share/bash-completion/completions/chokepoint \
    /usr/share/zsh/vendor-completions/_chokepoint /usr/share/fish/vendor_completions.d/chokepoint.fish /usr/share/doc/chokepoint/copyright \
    /usr/share/man/man1/chokepoint-watch.1.gz /lib/systemd/system/chokepoint-watch.service /etc/chokepoint/watch.toml \
    /usr/share/doc/chokepoint/docs/watch/README.md /usr/share/doc/chokepoint/docs/privileges.md /usr/share/doc/chokepoint/monitoring/alerts.yml; do
    dpkg --listfiles chokepoint | grep -qxF "$file" || { echo "the package lacks $file" >&2; exit 1; }
done
# What the unit runs, and names in its comments, is there.
settings=/etc/chokepoint/watch.toml
grep -qxF "ExecStart=/usr/bin/chokepoint watch --headless --config $settings --data-dir \${STATE_DIRECTORY}" /lib/systemd/system/chokepoint-watch.service
chokepoint watch --headless --config "$settings" --data-dir /var/lib/chokepoint-watch --print-config
# Settings are the user's: an upgrade and a removal keep them.
dpkg-query --show --showformat '${Conffiles}' chokepoint | grep -F " $settings " || { echo "$settings is no conffile" >&2; exit 1; }
echo '# mine' >>"$settings"
dpkg --install /chokepoint.deb
grep -qxF '# mine' "$settings" || { echo "an upgrade overwrites $settings" >&2; exit 1; }
nginx
status=0
chokepoint diagnose -c 50 http://127.0.0.1/ >/report 2>/progress || status=$?
# A static program has its own resolver: names are looked up as by other programs.
chokepoint bench -n 100 http://localhost/ >/bench 2>&1 || { cat /bench >&2; exit 1; }
cat /report
dpkg --remove chokepoint
grep -qxF '# mine' "$settings" || { echo "a removal takes $settings away" >&2; exit 1; }
# What the service would have left.
mkdir -p /var/lib/private/chokepoint-watch
ln -s private/chokepoint-watch /var/lib/chokepoint-watch
dpkg --purge chokepoint
found >/after
diff /before /after || { echo "the package leaves something behind" >&2; exit 1; }
[ "$status" -eq 0 ] || { cat /progress >&2; echo "diagnose ended with $status; the machine has to be idle, its load is $(cut -d' ' -f1 /proc/loadavg)" >&2; exit 1; }
! grep -n CAP_ /report /progress || { echo "root is told about capabilities" >&2; exit 1; }
END
# shellcheck disable=SC2016
unshare --mount --net --pid --uts --ipc --fork --kill-child sh -euc '
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount --rbind /sys/fs/cgroup "$1/sys/fs/cgroup"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/run"
    ip link set lo up
    exec chroot "$1" /bin/sh /new-user.sh' sh "$root"
lines=$(wc -l <"$root/report")
[ "$lines" -le "$report_lines_max" ] || { echo "the report has $lines lines, more than $report_lines_max" >&2; exit 1; }
step "as expected: the report has $lines lines"

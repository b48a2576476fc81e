#!/bin/sh
# Installs the missing Debian packages that the lab, the tests and the build need: nginx, php-fpm, nftables, iproute2, jq, and clang for the cargo feature
# `bpf`; and those of the programs that are named: packages.sh [PROGRAM...]. Prints what it installs; quick and silent if nothing is missing. The services are
# neither started now nor enabled for the next boot.
set -eu

# While this file exists, the installation of packages starts no service (/usr/share/doc/init-system-helpers, invoke-rc.d).
policy=/usr/sbin/policy-rc.d
mark="# chokepoint: no service is started while packages are installed"

has() {
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1
}

has_php_fpm() {
    has php-fpm && return 0
    for program in /usr/sbin/php-fpm[0-9]* /usr/local/sbin/php-fpm*; do
        [ -x "$program" ] && return 0
    done
    return 1
}

# Tomcat has no program of its own. Its classes suffice: the package tomcat10 would add a service.
has_tomcat() {
    [ -r /usr/share/tomcat10/bin/bootstrap.jar ] && has java
}

missing() {
    has nginx || echo nginx
    has_php_fpm || echo php-fpm
    has nft || echo nftables
    has ip || echo iproute2
    has jq || echo jq
    has clang || echo clang
    for program in "$@"; do
        case $program in
        tomcat) has_tomcat || echo tomcat ;;
        *) has "$program" || echo "$program" ;;
        esac
    done
}

# Prefers the light nginx if the release still has it.
package_of() {
    if [ "$1" = nginx ] && apt-cache policy nginx-light 2>/dev/null | grep -q 'Candidate: [0-9]'; then
        echo nginx-light
    elif [ "$1" = man ]; then
        echo man-db
    elif [ "$1" = node ]; then
        echo nodejs
    elif [ "$1" = tomcat ]; then
        echo tomcat10-common default-jre-headless
    elif [ "$1" = systemd-analyze ]; then
        echo systemd
    else
        echo "$1"
    fi
}

forbid_starts() {
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
        chmod 0755 "$policy"
    fi
}

# Removes the file only if it is ours, including one that a killed run left.
allow_starts() {
    if [ -f "$policy" ] && grep -qxF "$mark" "$policy"; then
        rm -f "$policy"
    fi
}

# A package enables its service for the next boot, but the lab starts its own servers.
disable_services() {
    has systemctl || return 0
    for wanted in "$@"; do
        case $wanted in
        nginx) units=nginx.service ;;
        prometheus) units=prometheus.service ;;
        php-fpm) units=$(find /lib/systemd/system /usr/lib/systemd/system -name 'php*-fpm.service' -exec basename {} \; 2>/dev/null | sort -u) ;;
        *) units= ;;
        esac
        for unit in $units; do
            SYSTEMD_OFFLINE=1 systemctl --quiet disable "$unit" >/dev/null 2>&1 || echo "note: $unit is enabled for the next boot" >&2
        done
    done
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet --yes --no-install-recommends "$@" </dev/null
}

install() {
    packages=
    for wanted in "$@"; do
        packages="$packages $(package_of "$wanted")"
    done
    echo "installing$packages (their services are not started)" >&2
    trap allow_starts EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    forbid_starts
    # The download may be interrupted. The unpacking, which takes a few seconds, may not.
    # shellcheck disable=SC2086
    apt install --download-only $packages >/dev/null 2>&1 || {
        apt update
        apt install --download-only $packages >/dev/null
    }
    trap '' INT
    # shellcheck disable=SC2086
    apt install $packages >/dev/null
    disable_services "$@"
}

wanted=$(missing "$@")
[ -n "$wanted" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing on this system, which is no Debian: $(echo "$wanted" | tr '\n' ' '); install them, then try again" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    exec "$(dirname "$0")/as-root.sh" "$0" "$@"
fi

# shellcheck disable=SC2086
install $wanted

wanted=$(missing "$@")
if [ -n "$wanted" ]; then
    echo "still missing after the installation: $(echo "$wanted" | tr '\n' ' ')" >&2
    exit 1
fi

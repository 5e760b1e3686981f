#!/bin/sh
# The packaging: the unit passes systemd-analyze with the binary installed, sysusers and tmpfiles are understood, the shipped
# configurations are right, and what the sandbox allows is little.
# usage: unit.sh BUILD_FOLDER WAFERTIERD
set -eu
build=$1 daemon=$2
root=$(mktemp -d "${TMPDIR:-/tmp}/wt-unit-XXXXXX")
trap 'rm -rf "$root"' EXIT INT TERM

command -v systemd-analyze >/dev/null || { echo "SKIPPED: no systemd-analyze on this machine"; exit 77; }

DESTDIR=$root cmake --install "$build" >/dev/null
unit=$(find "$root" -name wafertierd.service)
test -n "$unit" || { echo "the unit was not installed"; exit 1; }
binary=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
test -x "$root$binary" || { echo "ExecStart names $binary, which is not installed"; exit 1; }

# The paths of the unit are those of the real root: check a copy that names the staged binary.
mkdir "$root/check"
sed "s|$binary|$root$binary|" "$unit" >"$root/check/wafertierd.service"
out=$(systemd-analyze verify --man=no "$root/check/wafertierd.service" 2>&1) || { echo "$out"; exit 1; }
if printf '%s\n' "$out" | grep -q wafertierd; then
    printf 'systemd-analyze verify has something to say:\n%s\n' "$out"
    exit 1
fi

level=$(systemd-analyze security --offline=yes --no-pager "$root/check/wafertierd.service" 2>/dev/null |
    sed -n 's/.*exposure level for wafertierd.service: \([0-9.]*\).*/\1/p')
echo "exposure level: $level"
awk -v level="$level" 'BEGIN { exit !(level != "" && level + 0 < 3) }' || { echo "the sandbox is open: exposure $level, not below 3"; exit 1; }

sysusers=$(find "$root" -path '*sysusers.d/wafertierd.conf')
tmpfiles=$(find "$root" -path '*tmpfiles.d/wafertierd.conf')
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$root/os/etc"
    systemd-sysusers --root="$root/os" "$sysusers"
    grep -q '^wafertier:' "$root/os/etc/passwd" && grep -q '^wafertier:' "$root/os/etc/group"
fi
grep -q '^d  */dev/shm/wafertier ' "$tmpfiles"

for conf in $(find "$root" -path '*share/wafertier/*.conf' ! -name loader.conf); do
    "$daemon" --config "$conf" --check-config
done
"$daemon" --print-config >"$root/defaults.conf"
printf 'tier "cold" { url = "file:///tmp/c" }\n' >>"$root/defaults.conf"
"$daemon" --config "$root/defaults.conf" --check-config
"$daemon" --help | grep -q -- --check-config
echo "the unit, its user and the sample configurations are right"

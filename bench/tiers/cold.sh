#!/usr/bin/env bash
# Runs bench_cold against a Ceph of its own, and `rados bench seq` beside it: cold.sh PATH-OF-bench_cold [MIB]
set -euo pipefail
servers=$(dirname "$0")/../../tests/servers
bench=${1:?the path of bench_cold}
dir=$(mktemp -d)
failed=no
trap '"$servers/ceph" wipe "$dir/c"; rm -rf "$dir"' EXIT
"$servers/ceph" start "$dir/c"
"$bench" "$dir/c/ceph.conf" wafers-cold "$dir/c/run/osd.0.asok" "${2:-512}" || failed=yes
rados() { timeout 120 rados -c "$dir/c/ceph.conf" -p wafers-cold -N bench "$@"; }
rados bench 5 write -b 8388608 -t 16 --no-cleanup >/dev/null
rados bench 5 seq -t 16 | sed -n 's/^Bandwidth (MB\/sec): */rados bench seq, 8 MiB, 16 in flight, MB\/s (MiB): /p'
[ "$failed" = no ] # bytes that the OSD did not count alike

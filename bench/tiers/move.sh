#!/usr/bin/env bash
# Runs bench_move on a Ceph (RADOS and CephFS by ceph-fuse) and a Redis of its own: move.sh PATH-OF-bench_move [OBJECTS [FROM TO]]
set -euo pipefail
servers=$(dirname "$0")/../../tests/servers
bench=${1:?the path of bench_move}
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/wt-move-XXXXXX")
trap '"$servers/cephfs" umount "$dir/m"; "$servers/redis" wipe "$dir/r"; "$servers/ceph" wipe "$dir/c"; rm -rf "$dir"' EXIT
"$servers/ceph" start "$dir/c"
"$servers/cephfs" mount "$dir/c" "$dir/m"
"$servers/redis" start "$dir/r" single
mkdir "$dir/m/bench"
"$bench" "$dir/c/ceph.conf" wafers-cold "$dir/c/run/osd.0.asok" "$dir/m/bench" "$dir/r/socket" "${2:-8}" "${@:3}"

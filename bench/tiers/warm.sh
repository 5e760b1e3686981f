#!/usr/bin/env bash
# Runs bench_warm on a CephFS of its own (ceph-fuse) and on a local disk: warm.sh PATH-OF-bench_warm [MIB]
# The local folder is below $TMPDIR (/var/tmp), which should be a disk. Needs fio, and root for the mount and to drop the page cache.
set -euo pipefail
servers=$(dirname "$0")/../../tests/servers
bench=${1:?the path of bench_warm}
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/wt-warm-XXXXXX")
trap '"$servers/cephfs" umount "$dir/m"; "$servers/ceph" wipe "$dir/c"; rm -rf "$dir"' EXIT
"$servers/ceph" start "$dir/c"
"$servers/cephfs" mount "$dir/c" "$dir/m"
mkdir "$dir/m/bench" "$dir/disk"
echo "== CephFS by ceph-fuse"
"$bench" "$dir/m/bench" "${2:-256}"
echo "== a local disk ($(stat -f -c %T "$dir/disk"))"
"$bench" "$dir/disk" "${2:-256}"

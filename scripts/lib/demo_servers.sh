# shellcheck shell=bash disable=SC2154 # variables of scripts/demo
# Sourced by scripts/demo: storage as in production, on servers of the demo's own. Cold is a pool of a throw-away Ceph (RADOS), warm its
# CephFS through ceph-fuse, hot a Redis on a Unix socket. See demo_local.sh for what each function is for.
ceph=tests/servers/ceph
cephfs=tests/servers/cephfs
redis=tests/servers/redis

storage_start() {
    echo "== servers: Ceph (RADOS, CephFS) and Redis in $root"
    $ceph start "$root/ceph"
    $cephfs mount "$root/ceph" "$root/mnt"
    $redis start "$root/redis" single
    mkdir -p "$root/mnt/wafertier"
    rados --version | head -n 1
    redis-server --version
}

storage_stop() {
    $cephfs umount "$root/mnt" || true
    [ ! -d "$root/redis" ] || $redis wipe "$root/redis" || true
    [ ! -d "$root/ceph" ] || $ceph wipe "$root/ceph" || true
}

# maxmemory has room for the tier's capacity, and for replies that are on their way to the readers.
storage_config() { # hot capacity
    $redis cli "$root/redis" config set maxmemory $(($1 + $1 / 8 + 67108864)) >/dev/null
    {
        sed -e "s#/var/lib/wafertier#$root#; s#/run/wafertier#$root#" -e '/^tier "cold"/,$d' config/local.conf
        cat <<C
tier "cold" {
    url = "rados://wafers-cold/demo?conf=$root/ceph/ceph.conf"
    filter = "$cold"
}

tier "warm" {
    url = "file://$root/mnt/wafertier"
    capacity = "4GiB"
}

tier "hot" {
    url = "redis+unix://$root/redis/socket"
    capacity = "$1"
}
C
    } >"$config"
}

storage_refresh() {
    $redis flush "$root/redis"
    find "$root/mnt/wafertier" -mindepth 1 -delete
}

storage_note() { echo "cold is a RADOS pool${cold:+, with $cold}, warm CephFS (ceph-fuse), hot Redis"; }

#!/usr/bin/env bash
# Steering and fsck on real servers: warm --wait into Redis from RADOS is done when every shard is there; fsck agrees, finds a damaged value and a
# lost part, and repairs both. Usage: steer.sh BUILD (with_ceph's environment; its Redis is its own)
set -u
W=$1/bin/wafertier D=$1/bin/wafertierd
S=$WT_TEST_SERVERS
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-steer-servers-XXXXXX") || exit 1
space=steer$$
daemon=
command -v redis-server >/dev/null || {
    echo "SKIPPED: redis-server is not installed (scripts/setup test)" >&2
    exit 77
}
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null
    [ -z "$daemon" ] || wait "$daemon" 2>/dev/null
    rados_do ls 2>/dev/null | while read -r name; do rados_do rm "$name"; done
    [ ! -d "$DIR/redis" ] || "$S/redis" wipe "$DIR/redis"
    rm -rf -- "$DIR"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$DIR"/out "$DIR"/err "$DIR"/log >&2 2>/dev/null
    exit 1
}
rados_do() { timeout 60 rados -c "$WT_TEST_CEPH/ceph.conf" -p wafers-cold -N "$space" "$@"; }
redis_do() { "$S/redis" cli "$DIR/redis" "$@"; }
w() { # CODE VERB [ARGUMENT...]
    local want=$1 code
    shift
    timeout 60 "$W" "$@" >out 2>err
    code=$?
    [ "$code" -eq "$want" ] || fail "wafertier $* ended with $code, not $want"
}
cd "$DIR" || exit 1
export WAFERTIER_CONFIG=$DIR/w.conf

"$S/redis" start "$DIR/redis" single || fail "redis"
redis_do config set maxmemory 256mb >/dev/null
mkdir state
cat >w.conf <<C
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = "200ms"
tier "cold" { url = "rados://wafers-cold/$space?conf=$WT_TEST_CEPH/ceph.conf" }
tier "hot" { url = "redis+unix://$DIR/redis/socket" capacity = "100MiB" }
C
start() {
    timeout 120 "$D" --config w.conf >>log 2>&1 &
    daemon=$!
    for _ in $(seq 200); do
        "$W" stats --json 2>/dev/null | grep -q '"active": true' && return
        sleep 0.1
    done
    fail "the daemon does not answer"
}
stop() {
    kill "$daemon"
    wait "$daemon"
    daemon=
}

"$W" gen --dataset wafers --samples 800 --kind sem --shape 64x64 --shard-size 256KiB --codec tar --quiet 2>/dev/null || fail "gen"
total=$("$W" ls wafers --json | jq .shards)
[ "$total" -ge 10 ] || fail "only $total shards"
start
w 0 warm wafers --tier hot --wait --quiet
grep -q " done  *$total of $total shards" out || fail "warm --wait"
w 0 fsck --data
grep -q "$total shards, $((2 * total)) objects; .* all agrees" out || fail "fsck beside the daemon"
stop

# A value of one shard, and a part of another one in cold; another cold object has no head.
key=$(redis_do --scan | grep -vE 'sentinel|wafertierd' | while read -r k; do [ "$(redis_do strlen "$k" 2>/dev/null)" -gt 100000 ] 2>/dev/null && echo "$k"; done | head -n 1)
[ -n "$key" ] || fail "no large value in Redis"
redis_do setrange "$key" 50000 XXXXXXXX >/dev/null

w 1 fsck --data
grep -qE '^hot +corrupt ' out || fail "the damaged value was not found"
bad=$(sed -n 's/^hot *corrupt *\([^:]*\):.*/\1/p' out)
victim=$("$W" ls wafers -l 2>/dev/null | grep -oE 'wafers/shards/[^ ]*' | grep -v "$bad" | head -n 1)
[ -n "$victim" ] || victim=$(rados_do ls | grep -oE 'wafers/shards/[0-9]*/[0-9]*-[0-9a-f]*\.tar' | grep -v "$bad" | sort -u | head -n 1)
rados_do ls | grep -F "$victim" | while read -r name; do rados_do rm "$name"; done
w 1 fsck
grep -qE "^cold +missing +$victim" out || fail "the lost object was not found: $victim"
w 0 fsck --data --repair
grep -qE "^hot +repair +$bad: the damaged copy was removed" out || fail "the damaged value was not removed"
grep -qE "^cold +repair +$victim: put anew from tier hot" out || fail "the lost object was not put anew"
w 0 verify wafers
start
w 0 fsck --data
grep -q 'all agrees' out || fail "fsck after the repair"
stop
echo "steering on servers: all passed"

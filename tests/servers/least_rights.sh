#!/usr/bin/env bash
# Daemon and loader on Ceph and Redis with exactly the rights that docs/operations-ceph.md and docs/operations-redis.md give them, taken
# from these pages: every sample comes, shards move up, nothing is refused; and the loader's rights change nothing.
# Usage: least_rights.sh BUILD (with_ceph's environment; its Redis is its own)
set -u
B=$1
S=$WT_TEST_SERVERS
docs=$S/../../docs
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-rights-XXXXXX") || exit 1
space=rights$$
daemon=
watcher=
command -v redis-server >/dev/null || {
    echo "SKIPPED: redis-server is not installed (scripts/setup test)" >&2
    exit 77
}
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null
    [ -z "$daemon" ] || wait "$daemon" 2>/dev/null
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    for n in "$space" leases; do
        rados_do -N "$n" ls 2>/dev/null | while read -r name; do rados_do -N "$n" rm "$name"; done
    done
    for client in wafertier wafertier-loader; do ceph_do auth del "client.$client" >/dev/null 2>&1; done
    [ ! -d "$DIR/redis" ] || "$S/redis" wipe "$DIR/redis"
    rm -rf -- "$DIR"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 30 "$DIR"/out "$DIR"/log >&2 2>/dev/null
    exit 1
}
ceph_do() { timeout 60 ceph -c "$WT_TEST_CEPH/ceph.conf" "$@"; }
rados_do() { timeout 60 rados -c "$WT_TEST_CEPH/ceph.conf" -p wafers-cold "$@"; }
cd "$DIR" || exit 1

# ---- the rights, as the pages have them ----
grep -oE "ceph auth get-or-create client\.wafertier(-loader)? .*" "$docs/operations-ceph.md" >caps
[ "$(wc -l <caps)" -eq 2 ] || fail "operations-ceph.md does not tell the caps of two clients"
while read -r _ _ _ client rest; do
    eval "ceph_do auth get-or-create $client $rest -o '$DIR/$client.keyring'" >out 2>&1 || fail "$client $rest"
done <caps
"$S/redis" start "$DIR/redis" acl || fail "redis"
grep -oE "user (wafertierd|waferloader) on .*" "$docs/operations-redis.md" >acl
[ "$(wc -l <acl)" -eq 2 ] || fail "operations-redis.md does not tell the rules of two users"
while read -r _ user rules; do
    # shellcheck disable=SC2086
    "$S/redis" cli "$DIR/redis" acl setuser "$user" reset ${rules/SECRET/$user-secret} >out 2>&1 && grep -q OK out || fail "$user $rules"
    (umask 077 && echo "$user-secret" >"$user.password")
done <acl
"$S/redis" cli "$DIR/redis" config set maxmemory 256mb >/dev/null

conf() { # file client user line
    cat >"$1" <<C
leases = "rados://wafers-cold/leases?conf=$WT_TEST_CEPH/ceph.conf&id=$2&keyring=$DIR/client.$2.keyring"
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = "200ms"
report_interval = "200ms"
tier "cold" { url = "rados://wafers-cold/$space?conf=$WT_TEST_CEPH/ceph.conf&id=$2&keyring=$DIR/client.$2.keyring" $4 }
tier "hot" { url = "redis://127.0.0.1:$(cat "$DIR/redis/port0")?user=$3&password_file=$DIR/$3.password" capacity = "100MiB" $4 }
C
}
mkdir state
conf daemon.conf wafertier wafertierd ""
conf loader.conf wafertier-loader waferloader "read_only = true"
stats() { "$B/bin/wafertier" stats --json --config daemon.conf; }

# ---- the main job ----
"$B/bin/wafertier" gen --dataset rights --samples 4000 --config daemon.conf --quiet >out 2>&1 || fail "packing with the daemon's rights"
"$B/bin/wafertierd" --config daemon.conf 2>log &
daemon=$!
for _ in $(seq 200); do
    [ "$(curl -s --unix-socket s http://localhost/healthz | jq -r .status)" = ok ] && break
    sleep 0.1
done
cat >settle <<W
for i in \$(seq 200); do
    sleep 0.2
    [ "\$('$B/bin/wafertier' stats --json --config '$DIR/daemon.conf' | jq '.moves.running + .moves.queued == 0 and .moves.done > 0')" = true ] && exit 0
done
W
timeout 150 "$B/bin/epochs" loader.conf rights 64 2 "bash $DIR/settle" >out 2>&1 || fail "a loader with its rights"
timeout 60 "$B/tests/paced" loader.conf rights 1 1 64 200 >out2 2>&1 & # 12 s
watcher=$!
for _ in $(seq 100); do
    rados_do -N leases ls | grep -q '^\.wafertier\.leases/rights/1-[0-9a-f]*$' && break
    kill -0 "$watcher" || fail "no lease was seen"
    sleep 0.1
done
wait "$watcher" || fail "a loader with a lease"
watcher=
rados_do -N leases ls | grep -q '^\.wafertier\.leases' && fail "a lease stayed"
awk '$1 ~ /^[12]$/ && NF == 11 { if ($2 != 4000 || $3 != 4000) bad = 1; n++; hot = $10 } END { exit bad || n != 2 || hot == 0 }' out ||
    fail "a sample is missing, or nothing came from hot"
rados_do -N leases -n client.wafertier-loader --keyring "$DIR/client.wafertier-loader.keyring" put .wafertier.leases/rights/1-old "$DIR/caps" >out 2>&1 ||
    fail "a lease by hand"
"$B/bin/wafertier" gc --dry-run --config daemon.conf >out 2>&1 || fail "gc with the daemon's rights"
stats >out
jq -e '.moves.done > 0 and .moves.failed == 0 and ([.tiers[] | .errors] | add) == 0' out >/dev/null || fail "something was refused"
[ "$("$S/redis" cli "$DIR/redis" acl log | grep -c .)" -le 1 ] || fail "Redis refused something: $("$S/redis" cli "$DIR/redis" acl log | head -n 12)"
# What the daemon shows of itself, the password files' text is in none of it.
for path in /v1/stats /v1/tiers /v1/jobs /v1/moves /v1/events?follow=0 /metrics; do
    curl -s -m 2 --unix-socket s "http://localhost$path"
done >shown
cat "/proc/$daemon/cmdline" "/proc/$daemon/comm" log >>shown
[ "$(wc -c <shown)" -gt 2000 ] || fail "the daemon shows nothing"
grep -aq -e wafertierd-secret -e waferloader-secret shown && fail "a password is shown: $(grep -a -e '-secret' shown | head -n 3)"
for who in daemon loader; do
    timeout 100 "$B/bin/wafertier" doctor --config $who.conf --json --size 4MiB >out 2>&1 || fail "doctor with the rights of the $who"
done

# ---- a loader changes nothing ----
sed 's/read_only = true//' loader.conf >greedy.conf
"$B/bin/wafertier" gen --dataset other --samples 300 --config greedy.conf --quiet >out 2>&1 && fail "a loader packed a data set"
grep -q "the cluster refuses it" out || fail "the message to a loader that packs"
rados_do -N "$space" -n client.wafertier-loader --keyring "$DIR/client.wafertier-loader.keyring" put x "$DIR/caps" >out 2>&1 &&
    fail "a loader wrote to the pool"
for command in "set wt:x y" "unlink wt:x" "flushall" "config get x" "keys x"; do
    # shellcheck disable=SC2086
    timeout 10 redis-cli -p "$(cat redis/port0)" --user waferloader --pass waferloader-secret --no-auth-warning $command >out 2>&1
    grep -q NOPERM out || fail "a loader's Redis user may '$command'"
done
kill "$daemon"
wait "$daemon" || fail "the daemon ended badly"
daemon=
echo "least_rights: all passed"

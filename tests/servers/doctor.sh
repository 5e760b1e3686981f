#!/usr/bin/env bash
# `wafertier doctor` on real servers: right on a healthy Ceph, CephFS and Redis, and the fault's name on broken ones.
# Usage: doctor.sh WAFERTIER (with_ceph's environment; its Redis servers are its own)
set -u
W=$1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-drs-XXXXXX") || exit 1
S=$WT_TEST_SERVERS
command -v redis-server >/dev/null || {
    echo "SKIPPED: redis-server is not installed (scripts/setup test)" >&2
    exit 77
}
mount=$DIR/mount
finish() {
    "$S/cephfs" umount "$mount" >/dev/null 2>&1
    for kind in single acl small; do [ -d "$DIR/$kind" ] && "$S/redis" wipe "$DIR/$kind"; done
    [ -n "$(rados -c "$WT_TEST_CEPH/ceph.conf" lspools 2>/dev/null)" ] && ceph_do auth del client.reader >/dev/null 2>&1
    rm -rf -- "$DIR"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$DIR/out" "$DIR/err" >&2 2>/dev/null
    exit 1
}
ceph_do() { timeout 60 ceph -c "$WT_TEST_CEPH/ceph.conf" "$@"; }
cd "$DIR" || exit 1
rados="rados://wafers-cold/doctor$$?conf=$WT_TEST_CEPH/ceph.conf"

conf() { # cold-url hot-url lines for hot...
    local cold=$1 hot=$2
    shift 2
    {
        echo 'control = ""'
        echo "tier \"cold\" { url = \"$cold\" }"
        [ -z "$hot" ] || echo "tier \"hot\" { url = \"$hot\" $* }"
    } >t.conf
}
doctor() { # expected-exit
    local rc=0
    timeout -k 5 120 "$W" doctor --json --size 8MiB --config t.conf >out 2>err || rc=$?
    [ "$rc" -eq "$1" ] || fail "doctor ended with $rc, not $1"
    [ ! -s err ] || fail "doctor prints on stderr"
}
wrongs() { jq -r '[.findings[] | select(.level == "wrong") | .where + ":" + .fault] | sort | join(" ")' out; }
names() {
    [ "$(wrongs)" = "$1" ] || fail "wrong is '$(wrongs)', not '$1'"
    [ "$(jq '[.findings[] | select(.advice == "" or .what == "")] | length' out)" = 0 ] || fail "a finding says nothing"
}
says() { jq -r '.findings[] | .what + " " + .advice' out | grep -qE "$1" || fail "no finding says '$1'"; }
fact() { jq -r ".tiers[$1].facts[] | select(.name == \"$2\") | .value" out; }

# ---- all is well: the reference setup ----
"$S/redis" start "$DIR/single" single || fail "redis"
"$S/redis" cli "$DIR/single" config set maxmemory 256mb >/dev/null || fail "maxmemory"
hot="redis+unix://$DIR/single/socket"
conf "$rados" "$hot" 'capacity = "100MiB"'
doctor 0
names ""
[ "$(jq '[.tiers[] | select(.reach and .write and .read and .remove and .reads > 10 and .read_rate > 0 and .write_rate > 0)] | length' out)" = 2 ] ||
    fail "a step is missing"
[[ "$(fact 0 server)" =~ ^Ceph\ [0-9]+\.[0-9]+ ]] && [[ "$(fact 0 cluster)" =~ ^[0-9a-f-]{36}$ ]] || fail "Ceph's version and cluster"
[[ "$(fact 1 server)" =~ ^Redis\ [0-9]+\.[0-9]+ ]] && [ "$(fact 1 maxmemory)" = 268435456 ] || fail "Redis' version and maxmemory"
[ "$("$S/redis" cli "$DIR/single" --scan | grep -c doctor)" = 0 ] || sleep 11 # values go a read deadline after their header
[ -z "$(rados -c "$WT_TEST_CEPH/ceph.conf" -p wafers-cold --all ls | grep "doctor$$" | grep -v lock)" ] || fail "the probe is left in RADOS"
echo "well: passed"

# ---- CephFS: a mount of its own, so that it can die ----
"$S/cephfs" mount "$WT_TEST_CEPH" "$mount" || fail "cephfs mount"
mkdir "$mount/doctor$$"
conf "$rados" "file://$mount/doctor$$"
rc=0
timeout 120 "$W" doctor --json --size 4MiB --config t.conf >out 2>err || rc=$?
[ "$(jq -r '.tiers[1].place.kind' out)" = fuse.ceph-fuse ] || fail "the kind of mount"
[ "$(jq '.tiers[1] | .reach and .write and .read and .remove' out)" = true ] || fail "a step on CephFS"
case $(wrongs) in "" | hot:not-faster) ;; *) fail "wrong on CephFS: $(wrongs)" ;; esac # one disk under both: it may well be slower
rmdir "$mount/doctor$$/.wafertier.tmp" "$mount/doctor$$"
"$S/cephfs" kill "$mount"
doctor 1
names "hot:mount-dead"
says "umount -l"
"$S/cephfs" umount "$mount"
doctor 1
names "hot:folder-missing"
echo "cephfs: passed"

# ---- Redis ----
"$S/redis" cli "$DIR/single" config set maxmemory 0 >/dev/null
conf "$rados" "$hot"
doctor 1
names "hot:redis-maxmemory"
says "CONFIG SET maxmemory"
"$S/redis" cli "$DIR/single" config set maxmemory 256mb maxmemory-policy allkeys-lru >/dev/null
doctor 1
names "hot:redis-evicts"
says "allkeys-lru"
"$S/redis" cli "$DIR/single" config set maxmemory-policy noeviction >/dev/null
"$S/redis" cli "$DIR/single" config set appendonly yes >/dev/null
doctor 0
says "writes all that it gets"
"$S/redis" cli "$DIR/single" config set appendonly no maxmemory 40mb >/dev/null
"$S/redis" cli "$DIR/single" set filler "$(head -c 100000 /dev/zero | tr '\0' x)" >/dev/null
"$S/redis" cli "$DIR/single" eval 'for i = 1, 38 do redis.call("set", "filler" .. i, string.rep("x", 1000000)) end' 0 >/dev/null
doctor 1
names "hot:full"
says "maxmemory"
"$S/redis" kill "$DIR/single"
doctor 1
names "hot:unreachable"
says "Does redis-server run"

"$S/redis" start "$DIR/acl" acl || fail "redis acl"
at=127.0.0.1:$(cat "$DIR/acl/port0")
"$S/redis" cli "$DIR/acl" config set maxmemory 256mb >/dev/null
conf "$rados" "redis://daemon:daemon-secret@$at"
doctor 0
grep -q daemon-secret out && fail "the report has the password"
conf "$rados" "redis://daemon:wrong-secret@$at"
doctor 1
[[ "$(wrongs)" =~ ^hot:(denied|unreachable)$ ]] || fail "wrong is '$(wrongs)'"
says "refused user or password"
grep -q wrong-secret out && fail "the report has the password"
conf "$rados" "redis://loader:loader-secret@$at"
doctor 1
names "hot:denied"
says "ACL"
conf "$rados" "redis://loader:loader-secret@$at" "read_only = true"
doctor 0
echo "redis: passed"

# ---- RADOS ----
conf "rados://no-such-pool?conf=$WT_TEST_CEPH/ceph.conf" ""
doctor 1
names "cold:unreachable"
says 'ceph osd pool create no-such-pool'
sed 's/^mon_host.*/mon_host = v1:127.0.0.1:1/' "$WT_TEST_CEPH/ceph.conf" >away.conf
conf "rados://wafers-cold?conf=$DIR/away.conf" ""
doctor 1
names "cold:unreachable"
says "no monitor answers"
conf "rados://wafers-cold?conf=$WT_TEST_CEPH/ceph.conf&keyring=$DIR/none" ""
doctor 1
names "cold:bad-tier"
says "none in the URL cannot be read"
conf "rados://wafers-cold?conf=$WT_TEST_CEPH/ceph.conf&id=stranger" ""
doctor 1
names "cold:unreachable"
says "client.stranger"
ceph_do auth get-or-create client.reader mon 'allow r' osd 'allow r pool=wafers-cold' -o "$DIR/reader.keyring" >/dev/null 2>&1 || fail "ceph auth"
reader="rados://wafers-cold?conf=$WT_TEST_CEPH/ceph.conf&id=reader&keyring=$DIR/reader.keyring"
conf "$reader" ""
doctor 1
names "cold:denied"
says "ceph auth caps"
ceph_do auth del client.reader >/dev/null 2>&1
echo "rados: passed"
echo "doctor (servers): all passed"

#!/usr/bin/env bash
# `wafertier doctor` on the embedded default: right where all is well, and the fault's name where it is not. Mounts need root and are
# skipped, loudly, where they cannot be made. Usage: doctor.sh WAFERTIER WAFERTIERD
set -u
W=$1 D=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-doctor-XXXXXX") || exit 1
SHM=$(mktemp -d /dev/shm/wt-doctor-XXXXXX) || exit 1
pids=()
finish() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null
    [ ${#pids[@]} -eq 0 ] || wait "${pids[@]}" 2>/dev/null
    for m in "$DIR"/mount.*; do mountpoint -q "$m" && umount -l "$m"; done
    rm -rf -- "$DIR" "$SHM"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$DIR"/out "$DIR"/err >&2 2>/dev/null
    exit 1
}
cd "$DIR" || exit 1
mkdir cold warm state "$SHM/hot"

# Writes the configuration FILE; further arguments are lines for the tier that they begin with: "hot filter = ...".
conf() { # file control lines...
    local file=$1 control=$2 tier
    shift 2
    {
        echo "state_folder = \"$DIR/state\""
        echo "control = \"$control\""
        for tier in cold warm hot; do
            echo "tier \"$tier\" {"
            case $tier in hot) printf 'url = "file://%s"\ncapacity = "64MiB"\n' "$SHM/hot" ;; *) echo "url = \"file://$DIR/$tier\"" ;; esac
            printf '%s\n' "$@" | sed -n "s/^$tier //p"
            echo "}"
        done
    } >"$file"
}

doctor() { # expected-exit arguments...: the report is in out
    local want=$1 rc=0
    shift
    timeout -k 5 120 "$W" doctor --json --size 8MiB "$@" >out 2>err || rc=$?
    [ "$rc" -eq "$want" ] || fail "doctor $* ended with $rc, not $want"
    [ ! -s err ] || fail "doctor $* prints on stderr"
    [ "$(jq .ok out)" = "$([ "$want" -eq 0 ] && echo true || echo false)" ] || fail "ok and the exit status differ"
    [ -z "$(find cold warm "$SHM" -name '.wafertier.doctor*' 2>/dev/null)" ] || fail "probes are left"
}
wrongs() { jq -r '[.findings[] | select(.level == "wrong") | .where + ":" + .fault] | sort | join(" ")' out; }
names() { # what exactly is wrong, in order
    [ "$(wrongs)" = "$1" ] || fail "wrong is '$(wrongs)', not '$1'"
    [ "$(jq '[.findings[] | select(.advice == "" or .what == "")] | length' out)" = 0 ] || fail "a finding says nothing"
}
says() { # a text in some finding
    jq -r '.findings[] | .what + " " + .advice' out | grep -qE "$1" || fail "no finding says '$1'"
}

status() { # socket
    curl -s --max-time 5 --unix-socket "$1" http://localhost/healthz | jq -r .status
}
start() { # conf socket status
    timeout 200 "$D" --config "$1" >>"$DIR/log" 2>&1 &
    pids+=($!)
    for _ in $(seq 200); do
        [ "$(status "$2")" = "$3" ] && return
        sleep 0.1
    done
    cat "$DIR/log" >&2
    fail "the daemon does not become $3"
}
stop() {
    kill "${pids[-1]}"
    wait "${pids[-1]}"
    unset 'pids[-1]'
}

# ---- all is well ----
conf w.conf "unix:$DIR/s"
"$W" gen --dataset some --config w.conf --samples 3000 --quiet 2>/dev/null || fail "gen"
start w.conf s ok
doctor 0 --config w.conf
names ""
[ "$(jq '[.tiers[] | select(.reach and .write and .read and .remove and .reads > 10 and .median_us > 0
    and .p99_us >= .median_us and .write_rate > 0 and .read_rate > 0 and .probe_bytes > 0)] | length' out)" = 3 ] || fail "a step is missing"
[ "$(jq '.tiers[2].capacity' out)" = 67108864 ] && [ "$(jq '.tiers[0].used > 0' out)" = true ] || fail "capacity or use"
[ "$(jq -r '.tiers[2].place.kind' out)" = tmpfs ] || fail "the hot tier's file system"
jq -r .daemon out | grep -q '^wafertierd .*: ok$' || fail "the daemon"
timeout 60 "$W" doctor --config w.conf --size 1MiB >out 2>err || fail "the table"
grep -qE '^cold +ok +ok +ok +ok ' out && grep -q '^all is well$' out || fail "the table"
echo "well: passed"

# ---- a reader only reads ----
conf reader.conf "" 'cold read_only = true' 'warm read_only = true' 'hot read_only = true'
before=$(find cold warm "$SHM" | sort)
doctor 0 --config reader.conf
[ "$(jq '.tiers[0] | .write == null and .remove == null and .read and .reads > 10' out)" = true ] || fail "a reader's steps"
[ "$before" = "$(find cold warm "$SHM" | sort)" ] || fail "a reader's doctor wrote something"

# ---- the daemon ----
doctor 0 --config w.conf
conf other.conf "unix:$DIR/other"
doctor 1 --config other.conf
names "daemon:daemon-down daemon:lock-held"
says "$(hostname)" # who holds it
sed "s#$DIR/state#$DIR/state2#" other.conf >standby.conf
mkdir state2
start standby.conf other standby
doctor 1 --config standby.conf
names "daemon:daemon-standby"
stop
stop
doctor 1 --config w.conf
names "daemon:daemon-down"
says "systemctl start wafertierd"
start w.conf s ok # so the lock that doctor looked at is free again
stop
conf down.conf "unix:$DIR/s" "hot url = \"file://$SHM/no/hot\""
start down.conf s degraded
doctor 1 --config down.conf
names "daemon:daemon-degraded hot:folder-missing"
stop
echo "daemon: passed"

# ---- tiers ----
conf one.conf ""
mv cold elsewhere
doctor 1 --config one.conf
names "cold:folder-missing"
says "install -d"
[ ! -e cold ] || fail "doctor made the folder"
mv elsewhere cold

conf one.conf "" 'hot filter = "delay read=15ms"'
doctor 1 --config one.conf
names "hot:not-faster"
says "not faster than warm"

conf one.conf "" 'hot filter = "fault read=CORRUPT:every9 seed=3"'
doctor 1 --config one.conf
names "hot:corrupt"
says "byte [0-9]+ is not what was written"

conf one.conf "" 'warm filter = "fault read=SHORT:every5"'
doctor 1 --config one.conf
names "warm:corrupt"

conf one.conf "" 'warm filter = "fault probe=DOWN"'
doctor 1 --config one.conf
names "warm:unreachable"

conf one.conf "" 'warm filter = "fault read=HANG"' 'warm timeout = "300ms"'
SECONDS=0
doctor 1 --config one.conf --timeout 1s
names "warm:unreachable"
[ $SECONDS -lt 30 ] || fail "a tier that hangs took $SECONDS s"

conf one.conf "" 'warm filter = "fault remove=DENIED"'
timeout 60 "$W" doctor --json --size 1MiB --config one.conf >out 2>err
names "warm:left-over"
# What stays is gc's, though not as long as its process may live.
[ -n "$(find warm -name '.wafertier.doctor*')" ] || fail "the fault did not work"
conf one.conf ""
"$W" gc --config one.conf --young 0s >out 2>err || fail "gc"
[ -z "$(find warm -name '.wafertier.doctor*')" ] || fail "gc leaves the probe"

cp cold/some/manifest.json warm/ || fail "no manifest"
conf one.conf "" 'warm capacity = "200"'
doctor 1 --config one.conf
names "warm:full"
says "tier is full"
rm warm/manifest.json

if [ "$(stat -c %d "$DIR")" = "$(stat -c %d /)" ]; then
    conf one.conf "" "warm url = \"file://$DIR/warm?mount=required\""
    doctor 1 --config one.conf
    names "warm:mount-missing"
    says "findmnt"
else
    echo "SKIPPED: mount=required ($DIR lies on a mount)"
fi

conf one.conf "" 'warm url = "gopher://warm"'
doctor 1 --config one.conf
names "warm:bad-tier"

conf one.conf ""
(
    ulimit -n 512
    doctor 1 --config one.conf
    names "host:open-files"
) || exit 1
"$W" doctor --config missing.conf >out 2>err && fail "a configuration that is not there"
grep -q "missing.conf" err || fail "the message about the configuration"
echo "tiers: passed"

# ---- rights and mounts ----
chmod 755 "$DIR" "$SHM" # mktemp made them private
if [ "$(id -u)" -eq 0 ]; then
    doctor 1 --config one.conf --user nobody
    names "cold:denied hot:denied warm:denied"
    says "Permission denied"
    [ "$(jq -r .user out)" = nobody ] || fail "as whom it looked"
    # Root looks as the owner, and leaves nothing that the owner cannot use.
    rm -rf warm2
    mkdir -m 700 warm2
    chown nobody warm2
    conf one.conf "" 'cold read_only = true' "warm url = \"file://$DIR/warm2\"" 'hot read_only = true'
    doctor 0 --config one.conf
    [ -z "$(find warm2 ! -user nobody)" ] || fail "something in the tier is not its owner's"
else
    chmod 555 cold
    doctor 1 --config one.conf
    names "cold:denied"
    chmod 755 cold
fi
mkdir mount.ro mount.small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=1m none mount.small 2>/dev/null; then
    head -c 1000000 /dev/zero >mount.small/else
    conf one.conf "" "hot url = \"file://$DIR/mount.small\""
    doctor 1 --config one.conf
    names "hot:full"
    mount -t tmpfs none mount.ro && mount -o remount,ro mount.ro
    conf one.conf "" "hot url = \"file://$DIR/mount.ro\""
    doctor 1 --config one.conf
    names "hot:denied"
    says "Read-only file system"
    [ "$(jq '.tiers[2].place.mounted_read_only' out)" = true ] || fail "the mount's flag"
else
    echo "SKIPPED: small and read-only mounts (they need root)"
fi
echo "rights: passed"

# ---- Ctrl-C takes the probe back; what a SIGKILL leaves goes with gc ----
conf slow.conf "" 'cold filter = "delay read=100ms"'
env --default-signal=INT "$W" doctor --config slow.conf >out 2>err &
pid=$!
for _ in $(seq 100); do
    [ -n "$(find cold -name '.wafertier.doctor*')" ] && break
    sleep 0.05
done
[ -n "$(find cold -name '.wafertier.doctor*')" ] || fail "no probe is seen"
kill -INT $pid
rc=0
wait $pid || rc=$?
[ $rc -eq 130 ] || fail "after Ctrl-C doctor ended with $rc, not 130"
[ -z "$(find cold -name '.wafertier.doctor*')" ] || fail "after Ctrl-C the probe is left"
"$W" doctor --config slow.conf >out 2>err &
pid=$!
for _ in $(seq 100); do
    [ -n "$(find cold -name '.wafertier.doctor*')" ] && break
    sleep 0.05
done
kill -KILL $pid
wait $pid 2>/dev/null
[ -n "$(find cold -name '.wafertier.doctor*')" ] || fail "no probe is left to be found"
conf one.conf ""
"$W" gc --config one.conf >out 2>err || fail "gc"
[ -z "$(find cold -name '.wafertier.doctor*')" ] || fail "gc does not see that the probe's process is dead"
echo "doctor: all passed"

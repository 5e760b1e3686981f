#!/bin/bash
# Data that is landed in the warm tier: read there, kept there, flushed to cold by the daemon and by hand, and an ordinary cached copy from then on.
# Usage: land.sh BIN PACED: the folder with wafertier and wafertierd, and a job that reads.
set -u
BIN=$1 PACED=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-land-XXXXXX") || exit 1
DAEMON=
cleanup() {
    [ -n "$DAEMON" ] && kill -KILL "$DAEMON" 2>/dev/null && wait "$DAEMON" 2>/dev/null
    rm -rf "$DIR"
}
trap cleanup EXIT
cd "$DIR" || exit 1
mkdir cold warm hot

fail() {
    tail -20 out log 2>/dev/null >&2
    echo "FAILED: $*" >&2
    exit 1
}
W() { timeout 60 "$BIN/wafertier" "$@" >out 2>&1; }
must() { W "$@" || fail "wafertier $*"; }
refused() { # PATTERN COMMAND...
    local pattern=$1
    shift
    W "$@" && fail "wafertier $* was not refused"
    grep -q -- "$pattern" out || fail "wafertier $* does not say '$pattern'"
}
conf() { # FILTER-OF-COLD CAPACITY-OF-WARM
    cat >d.conf <<END
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = 100ms
policy { min_stay = 0s }
tier "cold" { url = "file://$DIR/cold" filter = "$1" }
tier "warm" { url = "file://$DIR/warm" capacity = "$2" land_max = "48MiB" }
tier "hot" { url = "file://$DIR/hot" capacity = "4MiB" }
END
}
start() {
    "$BIN/wafertierd" --config d.conf >>log 2>&1 &
    DAEMON=$!
    for _ in $(seq 100); do
        curl -s --unix-socket s http://localhost/healthz 2>/dev/null | grep -q '"ok"' && return
        sleep 0.1
    done
    fail "the daemon does not start"
}
stop() {
    kill -TERM "$DAEMON"
    wait "$DAEMON"
    DAEMON=
}
stat() { curl -s --unix-socket s http://localhost/v1/stats | python3 -c 'import json, sys; o = json.load(sys.stdin)
for k in sys.argv[1].split("."): o = o[int(k) if isinstance(o, list) else k]
print(o)' "$1"; }
until_stat() { # NAME LEAST
    for _ in $(seq 200); do
        [ "$(stat "$1")" -ge "$2" ] && return
        sleep 0.1
    done
    fail "$1 is $(stat "$1"), not $2"
}
shards() { find "$1/$2/shards" -type f 2>/dev/null | wc -l; }
GEN=(gen --kind sem --shape 256x256 --shard-size 512KiB --codec tar --quiet)
export WAFERTIER_CONFIG=$DIR/d.conf

# ---- landed, without a daemon ----
conf "" 64MiB
must "${GEN[@]}" --dataset d --size 24MiB --seed 1 --land warm
N=$(shards warm d)
[ "$N" -gt 20 ] && [ "$(shards cold d)" = 0 ] || fail "$N shards are in warm, $(shards cold d) in cold"
must ls && grep -q 'landed in warm' out || fail "ls does not say where it is"
must ls d --samples && [ "$(wc -l <out)" = 384 ] || fail "ls --samples"
must verify d
grep -q "$N shards, .* all good" out || fail "verify"
must fsck --data && grep -q 'all agrees' out || fail "fsck"
must gc --young 0s --grace 0s && grep -q '^0 orphans' out || fail "gc finds something"
refused 'land_max is 48.0 MiB' "${GEN[@]}" --dataset e --size 40MiB --seed 2 --land warm
[ "$(find cold/e warm/e -type f 2>/dev/null | wc -l)" = 0 ] || fail "a pack that was refused left something"
refused 'its land_max is 0' "${GEN[@]}" --dataset e --size 1MiB --seed 2 --land hot
refused "has no tier 'wram'" "${GEN[@]}" --dataset e --size 1MiB --seed 2 --land wram
refused "tier 'cold' is the cold one" "${GEN[@]}" --dataset e --size 1MiB --seed 2 --land cold
refused 'is not flushed to cold yet' "${GEN[@]}" --dataset d --size 1MiB --seed 2 --replace
refused 'give --config' verify d --from cold
timeout 60 "$PACED" d.conf d 1 1 16 0 >out 2>&1 || fail "a loader cannot read it"
grep -q 'epoch 0 cold 0 all [1-9]' out || fail "the loader did not read from where it lies"
grep -v '"warm"' d.conf >small.conf
timeout 60 "$PACED" small.conf d 1 1 16 0 >out 2>&1 && fail "a loader without that tier opened it"
grep -q "was landed in tier 'warm'" out || fail "that loader does not say why"

# ---- kept, whatever the pressure, while cold takes nothing ----
conf "fault open=FULL" 8MiB
start
until_stat flush.dirty "$N"
until_stat moves.refused 1
refused 'were landed there and are not flushed' evict d --tier warm
curl -s --unix-socket s http://localhost/metrics | grep -q "wafertier_dataset_dirty_shards{dataset=\"d\"} $N" || fail "metrics"
must stats && grep -q "not in cold yet" out || fail "stats do not tell"
sleep 2
[ "$(shards warm d)" = "$N" ] && [ "$(shards cold d)" = 0 ] || fail "something left warm"
timeout 60 "$PACED" d.conf d 1 1 16 0 >out 2>&1 || fail "a loader beside the daemon cannot read it"
stop

# ---- flushed by the daemon ----
conf "" 64MiB
start
must flush d --wait --timeout 30s
grep -q "all of its $N shards" out || fail "flush --wait"
must ls && grep -q 'generation 2$' out || fail "it is not a new generation in cold"
diff -r cold/d/shards warm/d/shards >out || fail "cold and warm differ"
must verify d --from cold
until_stat flush.datasets 1
until_stat flush.shards "$N"
for _ in $(seq 100); do
    [ "$(stat flush.landed)" = 0 ] && break
    sleep 0.1
done
[ "$(stat flush.landed)" = 0 ] || fail "the daemon does not take the new generation"
[ "$(stat tiers.1.shards)" = "$N" ] || fail "the copies in warm are not known"
timeout 10 curl -sN --max-time 2 --unix-socket s 'http://localhost/v1/events?since=0' | grep -q '"kind": *"flushed"' || fail "no event"
must evict d --tier warm --wait
[ "$(shards warm d)" = 0 ] || fail "an evicted copy is still in warm"
must verify d
stop

# ---- by hand, with some of it in cold, one of these damaged ----
must "${GEN[@]}" --dataset h --size 8MiB --seed 3 --land warm
mkdir -p cold/h && cp -r warm/h/shards cold/h/
rm -f $(find cold/h/shards -type f | sort | head -5)
F=$(find cold/h/shards -type f | sort | head -1)
chmod u+w "$F"
printf 'x' | dd of="$F" bs=1 seek=3000 conv=notrunc status=none
must flush h
grep -q '; 6 were copied' out || fail "flush by hand"
diff -r cold/h/shards warm/h/shards >out || fail "cold and warm differ"
must verify h --from cold
must flush h && grep -q '; 0 were copied' out || fail "a second flush"
must "${GEN[@]}" --dataset h --size 4MiB --seed 4 --replace

# ---- what is damaged where it was landed is told, and kept ----
must "${GEN[@]}" --dataset b --size 4MiB --seed 5 --land warm
F=$(find warm/b/shards -type f | sort | head -1)
chmod u+w "$F"
printf 'x' | dd of="$F" bs=1 seek=3000 conv=notrunc status=none
refused 'is damaged' flush b
[ "$(shards cold b)" = $(($(shards warm b) - 1)) ] || fail "the rest is not in cold"
must ls && grep -q '^b .*landed in warm' out || fail "it counts as flushed"
start
for _ in $(seq 100); do
    curl -sN --max-time 1 --unix-socket s 'http://localhost/v1/events?since=0' | grep -q '"kind": *"flush_failed"' && break
done
curl -sN --max-time 1 --unix-socket s 'http://localhost/v1/events?since=0' | grep -q '"kind": *"flush_failed"' || fail "the daemon does not say that it cannot"
[ -e "$F" ] || fail "the damaged copy is gone"
stop
echo "land: all passed"

#!/bin/bash
# The hot tier is lost under a running daemon and job, and comes back empty: a real Redis, killed and started again. The job goes on from cold, the
# daemon says that the tier is away, counts what is gone with it, and makes the copies again.
# usage: hot_lost.sh BIN PACED SERVERS
set -u
BIN=$1 PACED=$2 SERVERS=$3
command -v redis-server >/dev/null || {
    echo "SKIPPED: redis-server is not installed (scripts/setup test)" >&2
    exit 77
}
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-lost-XXXXXX") || exit 1
pids=()
clean() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
    wait
    [ ! -d "$DIR/redis" ] || "$SERVERS/redis" wipe "$DIR/redis"
    rm -rf "$DIR"
}
trap clean EXIT INT TERM
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$DIR"/*.log >&2
    exit 1
}
own() { curl -s -m 10 --unix-socket s "http://localhost$1"; }
ask() { own "$1" | jq -r "$2"; }
# until SECONDS WHAT COMMAND...: WHAT is said when it does not come true
until_true() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    while ! "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "$what"
        sleep 0.1
    done
}
health() { [ "$(ask /healthz .status)" = "$1" ]; }
knows_shards() { [ "$(ask /v1/stats .shards)" -gt 10 ]; }
hot_has() { [ "$(ask /v1/stats .tiers[1].shards)" -eq "$1" ]; }
epochs() { wc -l <job.out; }
read_from_hot() { tail -n 1 job.out | grep -q ' cold 0 '; }
read_from_cold() { tail -n 1 job.out | grep -q ' cold [1-9]'; }
more_epochs() { [ "$(epochs)" -gt "$1" ]; }
ended() { ! kill -0 "$job" 2>/dev/null; }

cd "$DIR" || exit 1
mkdir cold
"$SERVERS/redis" start redis single || fail "redis"
"$BIN/wafertier" gen -d wafers -u "file://$DIR/cold" --kind sem --shape 64x64 -n 512 -s 64KiB --codec tar --quiet || fail "gen"
cat >w.conf <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = 100ms
report_interval = 100ms
tier cold { url = "file://$DIR/cold" }
tier hot { url = "redis+unix://$DIR/redis/socket" capacity = "64MiB" }
CONF
timeout 110 "$BIN/wafertierd" --config w.conf 2>d.log &
pids+=($!)
until_true 20 "the daemon does not answer" health ok
until_true 10 "no data set" knows_shards
total=$(ask /v1/stats .shards)
timeout 100 "$PACED" w.conf wafers 1 150 16 5 >job.out 2>job.log &
job=$!
pids+=("$job")
until_true 30 "hot does not fill" hot_has "$total"
until_true 20 "the job does not read from hot" read_from_hot
[ "$(ask /v1/stats .reconcile.lost)" -eq 0 ] || fail "something is lost already"

"$SERVERS/redis" kill redis || fail "kill"
until_true 20 "nobody says that hot is away" health degraded
[ "$(ask /healthz '.down | join(" ")')" = hot ] || fail "down: $(own /healthz)"
before=$(epochs)
until_true 30 "the job stands still" more_epochs $((before + 3))
read_from_cold || fail "it does not read from cold: $(tail -n 1 job.out)"

"$SERVERS/redis" up redis || fail "up"
until_true 30 "hot does not come back" health ok
until_true 30 "hot does not fill again" hot_has "$total"
until_true 30 "the job does not read from hot again" read_from_hot
[ "$(ask /v1/stats .reconcile.lost)" -eq "$total" ] || fail "counted as lost: $(ask /v1/stats .reconcile.lost) of $total"
until_true 60 "the job does not end" ended
wait "$job" || fail "the job failed"
[ "$(epochs)" -eq 150 ] || fail "it ended after $(epochs) epochs"
"$BIN/wafertier" fsck --config w.conf --data >fsck.log 2>&1 || fail "fsck"
grep -q "$((2 * total)) objects; .* all agrees" fsck.log || fail "fsck: $(cat fsck.log)"
curl -sS -m 2 -N --unix-socket s 'http://localhost/v1/events?since=0' >events 2>/dev/null
grep -q '"kind": *"tier_down"' events && grep -q '"kind": *"tier_up"' events || fail "no events: $(grep -o '"kind": *"[a-z_]*"' events | sort | uniq -c)"
echo "$total copies lost and made again; the job read on, $(grep -c ' cold [1-9]' job.out) of 150 epochs from cold in part: all passed"

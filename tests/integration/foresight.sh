#!/bin/bash
# Jobs with seeds of their own on one data set, the cache a quarter of it, a real daemon: what leaves the cold tier, readers and mover together.
# Usage: foresight.sh BIN PACED [EPOCHS [MILLISECONDS-A-SHARD]]
set -u
BIN=$1 PACED=$2 EPOCHS=${3:-6} PACE=${4:-60}
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-fs-XXXXXX") || exit 1
pid=
trap '[ -n "$pid" ] && kill $pid 2>/dev/null && wait $pid; rm -rf "$DIR"' EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 30 "$DIR"/*.log "$DIR"/job.* >&2 2>/dev/null
    exit 1
}
cd "$DIR" || exit 1

stop() {
    kill "$pid" && wait "$pid"
    pid=
}

# start QUARTER-OF-THE-DATA
start() {
    rm -rf hot state
    mkdir -p state
    cat >w.conf <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
report_interval = "50ms"
tick = "200ms"
policy {
    min_stay = "0s"
    high = "100%"
    low = "100%"
}
tier "cold" { url = "file://$DIR/cold" }
tier "hot" { url = "file://$DIR/hot" capacity = "$1" }
CONF
    timeout 200 "$BIN/wafertierd" --config w.conf 2>daemon.log &
    pid=$!
    for _ in $(seq 100); do
        "$BIN/wafertier" stats --control s --json >/dev/null 2>&1 && return
        sleep 0.1
    done
    fail "the daemon does not answer"
}

member() { # NAME: a number of the daemon's statistics
    "$BIN/wafertier" stats --control s --json | tr -d ' \n' | sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}

# play SEED...: jobs with these seeds, a little apart; $cold and $all: bytes after the first epoch of each
play() {
    local jobs=() moved first
    for seed in "$@"; do
        timeout 150 "$PACED" w.conf wafers "$seed" "$EPOCHS" 16 "$PACE" >"job.$seed" 2>&1 &
        jobs+=($!)
        sleep 1.3
    done
    while [ "$(cat job.* | grep -c '^epoch 0 ')" -lt $# ]; do sleep 0.1; done
    first=$(member from_cold)
    if [ $# -gt 1 ]; then
        curl -s --unix-socket s http://localhost/v1/jobs >jobs.json
        [ "$(grep -o '"order": *"known"' jobs.json | wc -l)" -eq $# ] || fail "orders are not known: $(cat jobs.json)"
    fi
    wait "${jobs[@]}" || fail "a job failed"
    moved=$(($(member from_cold) - first))
    read -r cold all < <(awk '$1 == "epoch" && $2 > 0 { c += $4; a += $6 } END { print c + 0, a + 0 }' job.*)
    cold=$((cold + moved))
    rm -f job.*
}

"$BIN/wafertier" gen --dataset wafers --to "file://$DIR/cold" --kind sem --shape 64x64 --samples 1024 --shard-size 96KiB --codec tar \
    --seed 3 --quiet || fail "gen"
read -r shards stored < <("$BIN/wafertier" ls wafers --from "file://$DIR/cold" --json | tr -d ' \n' |
    sed 's/.*"shards":\([0-9]*\).*"stored_bytes":\([0-9]*\).*/\1 \2\n/')
[ "$shards" -ge 40 ] || fail "only $shards shards"

start $((stored / 4))
play 1
one=$((1000 * cold / all))
stop
start $((stored / 4))
play 1 2
two=$((1000 * cold / all))
grep -q "does not read" daemon.log && fail "a job that reads as it said was taken for another"
stop
echo "$shards shards, a quarter above cold; of 1000 bytes read from cold: one job $one, two jobs $two"
# The optimum: 750, and about 500; a fixed set has 750 for any number of jobs. Short epochs and whole seconds of reaction cost some.
[ "$one" -le 790 ] || fail "one job should read three quarters from cold"
[ "$two" -le 650 ] || fail "two jobs should do better than with a fixed set"
echo "foresight: all passed"

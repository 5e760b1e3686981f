#!/bin/bash
# A job on a cold tier that is too slow for it: the daemon says that it stalls, on what stage, and on which tier.
# usage: blame.sh BIN PACED
set -u
BIN=$1 PACED=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-blame-XXXXXX") || exit 1
pids=()
clean() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
    wait
    rm -rf "$DIR"
}
trap clean EXIT INT TERM
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$DIR"/*.log >&2
    exit 1
}
cd "$DIR" || exit 1
mkdir cold hot
"$BIN/wafertier" gen -d wafers -u "file://$DIR/cold" --kind sem --shape 64x64 -n 512 -s 64KiB --codec tar --quiet || fail "gen"
cat >d.conf <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = 100ms
report_interval = 50ms
tier cold { url = "file://$DIR/cold" }
tier hot { url = "file://$DIR/hot" capacity = "64KiB" }
CONF
sed 's|^tier cold.*|tier cold { url = "file://'"$DIR"'/cold" filter = "throttle rate=400KiB" }|' d.conf >job.conf
timeout 60 "$BIN/wafertierd" --config d.conf 2>d.log &
pids+=($!)
own() { curl -sS -m 10 --unix-socket s "http://localhost$1"; }
for _ in $(seq 100); do own /healthz 2>/dev/null | grep -q '"ok"' && break; sleep 0.1; done
timeout 50 "$PACED" job.conf wafers 1 1 16 1 >job.log 2>&1 &
pids+=($!)
for _ in $(seq 200); do
    own /v1/jobs >jobs
    grep -q '"blame":"fetch","blame_tier":"cold"' jobs && awk -F'"stalls":{"fetch":' '{ exit !($2 + 0 > 1) }' jobs && break
    sleep 0.05
done
grep -q '"blame":"fetch","blame_tier":"cold"' jobs || fail "nobody is blamed: $(cat jobs)"
fetch=$(sed 's/.*"stalls":{"fetch":\([0-9.]*\).*/\1/' jobs) cold=$(sed 's/.*"stall_tiers":{"cold":\([0-9.]*\).*/\1/' jobs)
awk -v f="$fetch" -v c="$cold" 'BEGIN { exit !(f > 1 && c > 0.8 * f && c <= f) }' || fail "stalls of fetch: $fetch s, of cold: $cold s"
own /metrics | grep -q '^wafertier_job_stall_seconds_total{.*stage="fetch"} [1-9]' || fail "the metrics do not tell"
echo "fetch stalled for $fetch s, cold for $cold s of that: all passed"

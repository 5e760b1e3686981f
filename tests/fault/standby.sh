#!/usr/bin/env bash
# Two daemons on one real Ceph: the second takes over within the lock's expiry when the first is killed or stopped (SIGSTOP), and the stopped
# one moves nothing when it goes on, though copies of its own were under way.
# Usage: standby.sh BIN (with_ceph's environment)
set -u
BIN=$1
TTL=4 # seconds
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-sb-XXXXXX") || exit 1
declare -A pid=()
finish() {
    for d in "${!pid[@]}"; do kill -KILL "${pid[$d]}" 2>/dev/null && wait "${pid[$d]}" 2>/dev/null; done
    rm -rf -- "$DIR"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$DIR"/*.log >&2
    exit 1
}
cd "$DIR" || exit 1
cold="rados://wafers-cold/standby$$?conf=$WT_TEST_CEPH/ceph.conf"

start() { # NAME FILTER-OF-WARM
    mkdir -p "$1" warm
    cat >"$1/conf" <<CONF
state_folder = "$DIR/$1/state"
control = "unix:$DIR/$1/s"
lock_ttl = "${TTL}s"
tick = "100ms"
policy { min_stay = "0s" }
mover { moves = 2 bytes_in_flight = "16MiB" }
tier "cold" { url = "$cold" }
tier "warm" { url = "file://$DIR/warm" filter = "$2" }
CONF
    "$BIN/wafertierd" --config "$1/conf" 2>>"$1.log" &
    pid[$1]=$!
}
call() { # NAME METHOD PATH [BODY]
    curl -s -m 5 --unix-socket "$1/s" -X "$2" ${4:+-d "$4"} "http://localhost$3"
}
status() { call "$1" GET /healthz | jq -r .status; }
until_true() { # SECONDS WHAT COMMAND...
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "$what"
        sleep 0.1
    done
}
is() { [ "$(status "$1")" = "$2" ]; }
copies() { find warm -name '*.tar' -not -path '*/.wafertier*' | wc -l; }
has_copies() { [ "$(copies)" -ge "$1" ]; }
has_set() { [ "$(call "$1" GET /v1/stats | jq .shards)" -ge 20 ]; }
running() { [ "$(call "$1" GET /v1/stats | jq .moves.running)" -ge 1 ]; }
heat() { # NAME: its first shards were read often
    local id
    id=$(call "$1" POST /v1/jobs '{"name":"j","dataset":"wafers","tiers":["cold","warm"]}' | jq -r .id)
    call "$1" POST "/v1/jobs/$id/progress" "{\"epoch\":0,\"step\":1,\"reads\":[$(seq -s, -f '[%.0f,"cold",9,9000000]' 0 19)]}" >/dev/null
}

"$BIN/wafertier" gen --dataset wafers --to "$cold" --kind sem --shape 64x64 --samples 512 --shard-size 96KiB --codec tar --seed 3 --quiet ||
    fail "gen"
start a "delay write=1500ms"
until_true 20 "the first is not active" is a ok
until_true 20 "the first finds no data set" has_set a
start b ""
until_true 20 "the second does not stand by" is b standby
call b GET /healthz | jq -r .standby_reason | grep -q "held by" || fail "the second does not say who holds the lock"

# ---- stopped in the middle of copies ----
heat a
until_true 20 "the first moves nothing" running a
kill -STOP "${pid[a]}"
begin=$(date +%s%N)
until_true $((TTL * 3)) "the second does not take over from a stopped one" is b ok
took=$((($(date +%s%N) - begin) / 1000000))
[ $took -le $((TTL * 1100 + 1500)) ] || fail "the second took over after $took ms"
until_true 20 "the second finds no data set" has_set b
sleep 1
before=$(copies)
kill -CONT "${pid[a]}"
until_true 10 "the stopped one does not stand by" is a standby
sleep 4 # its copies under way would have been published by now
[ "$(copies)" -eq "$before" ] || fail "the stopped one went on: $before copies became $(copies)"
[ "$(call a GET /v1/stats | jq .moves.running)" -eq 0 ] || fail "moves of the stopped one run"
echo "stopped: taken over after $took ms, $before copies before and after it went on"
heat b
until_true 20 "the second moves nothing" has_copies $((before + 5))

# ---- killed ----
kill -KILL "${pid[b]}"
begin=$(date +%s%N)
wait "${pid[b]}" 2>/dev/null
unset "pid[b]"
until_true $((TTL * 3)) "nobody takes over from a killed one" is a ok
took=$((($(date +%s%N) - begin) / 1000000))
[ $took -le $((TTL * 1100 + 1500)) ] || fail "taken over from a killed one after $took ms"
knows_all() { [ "$(call a GET /v1/stats | jq '.tiers[1].shards')" -eq "$(copies)" ]; }
until_true 20 "the first does not know what the second has moved" knows_all
echo "killed: taken over after $took ms; $(copies) copies are known"

# ---- ended in order: at once ----
start b ""
until_true 20 "the second does not stand by again" is b standby
begin=$(date +%s%N)
kill -TERM "${pid[a]}"
wait "${pid[a]}" || fail "it did not end in order"
unset "pid[a]"
until_true $TTL "nobody takes over from one that ended" is b ok
took=$((($(date +%s%N) - begin) / 1000000))
echo "ended: taken over after $took ms"
kill -TERM "${pid[b]}"
wait "${pid[b]}" || fail "the second did not end in order"
unset "pid[b]"
echo "standby: all passed"

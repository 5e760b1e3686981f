#!/bin/bash
# wafertier loadtest on a small data set: what it prints adds up, names the bottleneck, and its exit code tells whether a rate is held.
#   loadtest.sh WAFERTIER
set -euo pipefail
wafertier=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/wt-loadtest-XXXXXX")
trap 'rm -rf -- "$work"' EXIT
fail() {
    echo "loadtest.sh: $*" >&2
    exit 1
}
expect() { # code command...
    local want=$1 got=0
    shift
    timeout 60 "$@" >"$work/out" 2>"$work/err" || got=$?
    [ "$got" -eq "$want" ] || { cat "$work/out" "$work/err"; fail "'$*' ended with $got, not $want"; }
}

printf 'tier "cold" { url = "file://%s/cold" }\n' "$work" >"$work/plain.conf"
# The same tier behind a narrow link: storage is what holds a loader then.
printf 'tier "cold" { url = "file://%s/cold" filter = "throttle read=1MiB" }\n' "$work" >"$work/narrow.conf"
"$wafertier" gen -q -c "$work/plain.conf" -d wafers -n 4000 --codec tar

load=("$wafertier" loadtest -d wafers -b 64)
expect 0 "${load[@]}" -c "$work/plain.conf" -t 500ms --rate 100
grep -q '^wafers: 4000 samples in ' "$work/out" || fail "no first line"
grep -q '^bottleneck: ' "$work/out" || fail "no bottleneck"
grep -q '^100 samples/s are held' "$work/out" || fail "no verdict"

expect 0 "${load[@]}" -c "$work/plain.conf" -t 500ms --world 4 --rank 3 --json slots=3
jq -e '.rows == 16 and .rank == 3 and .world == 4 and .flat.samples > 0 and .flat.bytes >= .flat.samples * 2704 and
    .flat.stall_s <= .flat.seconds and .flat.samples_per_s > 0' "$work/out" >/dev/null || { cat "$work/out"; fail "JSON"; }

expect 1 "${load[@]}" -c "$work/narrow.conf" -t 1s --rate 1000000 --json
jq -e '.held == false and .flat.bottleneck == "fetch" and .flat.bottleneck_tier == "cold"' "$work/out" >/dev/null ||
    { cat "$work/out"; fail "storage is not named"; }
expect 1 "${load[@]}" -c "$work/narrow.conf" -t 1s --rate 1000000
grep -q '^bottleneck: fetch from tier cold' "$work/out" || fail "storage is not named"
grep -q 'NOT held' "$work/out" || fail "a rate that is not held is not told"

expect 2 "${load[@]}" -c "$work/plain.conf" slos=3
grep -q "did you mean 'slots'" "$work/err" || fail "an unknown option"
expect 2 "${load[@]}" -c "$work/plain.conf" slots
expect 2 "$wafertier" loadtest -d wafers
expect 2 "${load[@]}" --world 2 --rank 2
expect 1 "$wafertier" loadtest -c "$work/plain.conf" -d nothing -b 64 timeout_ms=300
grep -q nothing "$work/err" || fail "the missing data set is not named"
expect 1 "${load[@]}" -c "$work/plain.conf" -b 5000
grep -q 'choose a smaller batch' "$work/err" || fail "a batch larger than the data set"

"${load[@]}" -c "$work/plain.conf" -t 60s >/dev/null 2>"$work/err" &
pid=$!
sleep 1
kill -INT "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 130 ] || fail "Ctrl-C ended with $got"
echo "loadtest.sh: passed"

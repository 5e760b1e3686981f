#!/bin/bash
# SIGKILL at random points of a pack that lands in warm, of the flush by hand, and of the daemon that flushes. After each: what is visible is whole, read
# from wherever it lies; gc takes nothing of it. In the end all of it is in cold, right to the last byte, without any help of warm.
# Usage: crash_land.sh BIN. WAFERTIER_CRASH_ROUNDS: number of rounds (4). WAFERTIER_TEST_SEED: where the kills come.
set -u
W=$1/wafertier D=$1/wafertierd
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-crash-XXXXXX") || exit 1
CHILD=
cleanup() {
    [ -n "$CHILD" ] && kill -KILL "$CHILD" 2>/dev/null && wait "$CHILD" 2>/dev/null
    rm -rf "$DIR"
}
trap cleanup EXIT
cd "$DIR" || exit 1
ROUNDS=${WAFERTIER_CRASH_ROUNDS:-4}
SEED=${WAFERTIER_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((SEED % 32768))
echo "$ROUNDS rounds; WAFERTIER_TEST_SEED=$SEED"
cat >d.conf <<END
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = 20ms
lock_ttl = 1s
tier "cold" { url = "file://$DIR/cold" }
tier "warm" { url = "file://$DIR/warm" land_max = "1GiB" }
END
export WAFERTIER_CONFIG=$DIR/d.conf

fail() {
    tail -20 out log 2>/dev/null >&2
    echo "FAILED: round $round: $*" >&2
    exit 1
}
run() { timeout 120 "$W" "$@" >out 2>&1 || fail "wafertier $*"; }
GEN=(gen --dataset d --kind sem --shape 256x256 --size 24MiB --shard-size 512KiB --codec tar --quiet -j 2 --seed 1 --land warm)
shards() { find "$1/d/shards" -type f 2>/dev/null | wc -l; }
names() { "$W" ls d --long | grep -o '[^ ]*$' | grep shards/; }
killed_after() { # MOST-MILLISECONDS COMMAND...: 0 when the kill was in time
    local most=$1
    shift
    "$@" >>log 2>&1 &
    CHILD=$!
    sleep "$(printf '%d.%03d' 0 $((RANDOM % most)))"
    kill -KILL $CHILD 2>/dev/null
    local hit=$?
    wait $CHILD 2>/dev/null
    CHILD=
    return $hit
}
visible() { "$W" ls d --json >now 2>/dev/null; }
landed() { grep -q '"home": "warm"' now; }
check_whole() {
    run verify d --quiet
    run gc --young 0s --grace 0s --quiet
    run verify d --quiet
    names >list && cmp -s list want || fail "other shards are visible"
}

round=0
mkdir cold warm
run "${GEN[@]}"
names >want
N=$(wc -l <want)
rm -rf cold warm
run gen --dataset other --kind sem --shape 64x64 --size 256KiB --quiet --to cold
mv cold/other . && rm -rf cold

packs=0 flushes=0 daemons=0 left=0
for round in $(seq 1 "$ROUNDS"); do
    rm -rf cold warm state
    mkdir cold warm
    cp -r other cold/ # gc leaves all copies alone where cold has no data set at all
    killed_after 900 "$W" "${GEN[@]}" && packs=$((packs + 1))
    if ! visible; then
        left=$((left + $(shards warm)))
        run gc # young ones may be of a pack at work
        run gc --young 0s --quiet
        [ "$(shards warm)" = 0 ] || fail "$(shards warm) orphans are left in warm"
        run "${GEN[@]}"
    fi
    visible && landed || fail "it is not landed"
    [ "$(shards cold)" = 0 ] || fail "the pack wrote to cold"
    check_whole
    for _ in $(seq 40); do # a bit further each time
        if [ $((round % 2)) = 0 ]; then
            killed_after 120 "$W" flush d --quiet && flushes=$((flushes + 1))
        else
            killed_after 400 "$D" --config d.conf && daemons=$((daemons + 1))
        fi
        visible || fail "the data set is gone"
        check_whole
        landed || break
    done
    [ $((RANDOM % 2)) = 0 ] || run flush d
    run flush d # whoever has done it
    visible
    landed && fail "it is not flushed in the end"
    [ "$(shards cold)" = "$N" ] || fail "$(shards cold) of $N shards are in cold"
    rm -rf warm
    mkdir warm
    run verify d --from cold --quiet
    run fsck --data
    grep -q 'all agrees' out || fail "fsck"
    [ "$(find cold -name '*.tmp*' | wc -l)" = 0 ] || run gc --young 0s --grace 0s --quiet
done
echo "$packs packs, $flushes flushes, $daemons daemons killed; $left orphans taken back"
[ "$packs" -gt 0 ] && [ $((flushes + daemons)) -gt 0 ] || { echo "FAILED: no kill was in time: nothing was tested" >&2; exit 1; }
echo "crash_land: all passed"

#!/bin/bash
# SIGKILL of `wafertier gen` (a pack of generated images) at random points. After each: the data set is as it was before (absent, or its old
# generation whole), or published whole; gc --dry-run finds exactly what no manifest names, gc removes it; a second pack succeeds, and what
# it packs is the same as without a kill.
# Usage: crash_pack.sh WAFERTIER. WAFERTIER_CRASH_ROUNDS: number of kills (20). WAFERTIER_TEST_SEED: where they come.
set -u
W=$1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-crash-XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
cd "$DIR" || exit 1
unset WAFERTIER_CONFIG
ROUNDS=${WAFERTIER_CRASH_ROUNDS:-20}
SEED=${WAFERTIER_TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((SEED % 32768))
echo "$ROUNDS kills; WAFERTIER_TEST_SEED=$SEED"

fail() {
    cat out 2>/dev/null | tail -20 >&2
    echo "FAILED: round $round: $*" >&2
    exit 1
}
run() { timeout 120 "$@" >out 2>&1 || fail "$*"; }
# Objects of the data set and leases, as the shell sees them; lock files and folders are none.
objects() { find cold -type f | wc -l; }
gc_finds() { # options...: the number of orphans
    run "$W" gc --from cold "$@"
    sed -n 's/^\([0-9]*\) orphans.*/\1/p' out
}
GEN=("$W" gen --dataset d --kind sem --shape 256x256 --size 24MiB --shard-size 512KiB --codec tar --to cold --quiet -j 2 --seed)

round=0
for seed in 1 2; do # what they are without a kill
    run "${GEN[@]}" $seed
    "$W" ls d --long --from cold >want$seed || fail "ls"
    rm -rf cold
done
start=$(date +%s%N)
run "${GEN[@]}" 1
millis=$((($(date +%s%N) - start) / 1000000))
rm -rf cold

killed=0 visible=0 left=0
for round in $(seq 1 "$ROUNDS"); do
    rm -rf cold
    had=0
    if [ $((round % 2)) = 0 ]; then # over an older generation
        run "${GEN[@]}" 1
        had=$(objects)
        "${GEN[@]}" 2 --replace >/dev/null 2>&1 &
    else
        "${GEN[@]}" 2 >/dev/null 2>&1 &
    fi
    pid=$!
    sleep "$(printf '0.%03d' $((RANDOM % (millis > 900 ? 900 : millis + 20))))"
    kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null
    [ -d cold ] || continue
    # what is visible is whole
    if "$W" ls d --long --from cold >now 2>/dev/null; then
        run "$W" verify d --from cold --quiet
        if cmp -s now want2; then
            visible=$((visible + 1))
        elif [ $had != 0 ]; then
            [ "$("$W" ls d --long --from cold | sed 's/generation .*//')" = "$(sed 's/generation .*//' want1)" ] || fail "the old generation changed"
        else
            fail "another data set than was packed is visible"
        fi
    elif [ $had != 0 ]; then
        fail "the old generation is gone"
    fi
    # young ones are left alone, all but what says itself that its owner is dead
    run "$W" gc --from cold
    if cmp -s now want2; then published=1; else published=0; fi
    before=$(objects)
    found=$(gc_finds --dry-run --young 0s)
    left=$((left + found))
    [ $published = 1 ] || [ "$found" = $((before - had)) ] || fail "gc finds $found orphans of $before objects, $had were there before"
    [ $published = 0 ] || [ "$found" = 0 ] || fail "gc finds $found orphans in a published data set"
    [ "$(objects)" = "$before" ] || fail "a dry run removed something"
    if [ $((round % 4)) -lt 2 ]; then
        run "$W" gc --from cold --young 0s --quiet
        [ $published = 1 ] || [ "$(objects)" = "$had" ] || fail "$(objects) objects are left after gc, $had were there before"
    fi
    # and again, over what lies there
    run "${GEN[@]}" 2 --replace
    "$W" ls d --long --from cold >now || fail "ls"
    [ "$(grep -o '[^ ]*$' now | grep shards/)" = "$(grep -o '[^ ]*$' want2 | grep shards/)" ] || fail "the second pack made something else"
    run "$W" verify d --from cold --quiet
    run "$W" gc --from cold --young 0s --grace 0s --quiet
    [ "$(objects)" = $(($(grep -c shards/ want2) + 2)) ] || fail "$(objects) objects are left in the end"
    run "$W" verify d --from cold --quiet
    [ "$(gc_finds --young 0s --grace 0s)" = 0 ] || fail "a second gc finds more"
done
echo "$killed killed, $visible published before that, $left orphans found"
[ "$left" -gt 0 ] || { echo "FAILED: no kill left anything: nothing was tested" >&2; exit 1; }
echo "crash_pack: all passed"

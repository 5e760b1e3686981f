#!/bin/bash
# wafertier gen, pack, verify, ls and cat from outside: real files, real programs (tar, zstd, python3 with numpy), real signals.
# Usage: pack.sh WAFERTIER. Real wafer maps are used where WAFERTIER_REAL_DATA names their folder.
set -u
W=$1
HERE=$(cd "$(dirname "$0")" && pwd)
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-pack-XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
cd "$DIR" || exit 1
COLD=$DIR/cold
unset WAFERTIER_CONFIG
PY=/usr/bin/python3
export W COLD

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# expect CODE command...: its exit code; output in ./out, messages in ./err
expect() {
    local want=$1 got
    shift
    timeout 120 "$@" >out 2>err
    got=$?
    [ "$got" = "$want" ] || { cat out err >&2; fail "exit code $got, not $want: $*"; }
}
says() {
    grep -q -e "$1" out err || { cat out err >&2; fail "no '$1' in the output"; }
}
objects() { find "$1" -type f 2>/dev/null | wc -l; }

echo "-- command line"
expect 0 "$W" help
expect 0 "$W" --version
expect 2 "$W"
expect 2 "$W" pakc
says "did you mean 'pack'"
expect 2 "$W" pack x --datset y
says "did you mean --dataset"
expect 2 "$W" gen --dataset a --codec gzip --to "$COLD"
says "choose one of auto|tar|zstd"
expect 2 "$W" pack x
says "dataset NAME is missing"
expect 1 "$W" ls --config /nonexistent/x.conf
expect 1 "$W" gen --dataset Bad/Name --to "$COLD"

echo "-- gen, verify, ls, cat"
expect 0 "$W" gen --dataset a --to "$COLD" --samples 700 --seed 5 -j 1
says "700 in .* shards"
expect 0 "$W" gen --dataset b --to "$DIR/other" --samples 700 --seed 5 -j 4
"$W" ls a -l --from "$COLD" | sed 's|  a/|  |' >a.shards
"$W" gen --dataset a --to "$DIR/again" --samples 700 --seed 5 -j 3 --quiet || fail "gen again"
"$W" ls a -l --from "$DIR/again" | sed 's|  a/|  |' >again.shards
cmp a.shards again.shards || fail "the same seed gives other shards"
expect 0 "$W" verify a --from "$COLD"
says "all good"
expect 0 "$W" ls --from "$COLD"
says "^a  *700 samples"
expect 0 "$W" ls a --samples --from "$COLD"
[ "$(wc -l <out)" = 700 ] || fail "ls --samples does not list 700"
[ "$(cut -f1 out | sort -u | wc -l)" = 700 ] || fail "keys are not unique"
KEY=$(sed -n 400p out | cut -f1)
expect 0 "$W" cat a "$KEY" --json --from "$COLD"
says "\"key\": \"$KEY\""
says '"die_x"'
expect 0 "$W" cat a "$KEY" --raw --from "$COLD" -o raw
[ "$(stat -c %s raw)" = 2704 ] || fail "cat --raw gives $(stat -c %s raw) bytes"
expect 1 "$W" cat a no/such/key --from "$COLD"
says "has no sample"
expect 1 "$W" cat a "$KEY" --field mask --from "$COLD"
says "has no field 'mask'"

echo "-- other programs read the shards"
S=$(find "$COLD/a/shards" -name '*.tar.zst' | sort | head -1)
tar --zstd -tf "$S" >members || fail "tar cannot list $S"
grep -q '^lot0000/w00/s0000000\.npy$' members || fail "the first sample is not in $S"
zstd -tq "$S" || fail "zstd refuses $S"
mkdir x && zstd -dcq "$S" | tar -xf - -C x || fail "tar cannot extract $S"

echo "-- an existing data set is kept, a replacement is a new generation"
expect 1 "$W" gen --dataset a --to "$COLD" --samples 10
says "exists"
expect 0 "$W" gen --dataset a --to "$COLD" --samples 600 --replace
says "generation 2"
expect 0 "$W" verify a --from "$COLD" -q

echo "-- damage is found and named"
for damage in flip cut gone; do
    rm -rf bad
    cp -r "$COLD" bad
    name=$("$W" ls a -l --from bad | tail -1 | sed 's/.*  //')
    chmod u+w "bad/$name"
    case $damage in
    flip) printf 'X' | dd of="bad/$name" bs=1 seek=2000 conv=notrunc status=none ;;
    cut) truncate -s -1 "bad/$name" ;;
    gone) rm "bad/$name" ;;
    esac
    expect 1 "$W" verify a --from bad
    says "^$name: "
    says "shards are damaged"
done

echo "-- an interrupted pack leaves nothing"
interrupted=0
for i in $(seq 1 16); do
    rm -rf tmp
    "$W" gen --dataset i --kind sem --size 200MiB --seed "$i" --to "$DIR/tmp" >out 2>err &
    pid=$!
    sleep "0.$(printf '%03d' $((RANDOM % 700 + 5)))"
    [ $((i % 2)) = 0 ] && sig=INT || sig=TERM
    kill -$sig $pid 2>/dev/null
    wait $pid
    code=$?
    if [ $code = 0 ]; then
        expect 0 "$W" verify i --from tmp
        continue
    fi
    if [ $code = 143 ] || [ $code = 130 ] && ! [ -s err ]; then
        # The signal came before the program could look out for it.
        [ "$(objects tmp)" = 0 ] || fail "objects after an early signal"
        continue
    fi
    [ $code = 130 ] || { cat err >&2; fail "exit code $code after a signal"; }
    says "interrupted"
    [ "$(objects tmp)" = 0 ] || { find tmp -type f >&2; fail "an interrupted pack left objects"; }
    expect 0 "$W" ls --from tmp
    [ -s out ] && fail "an interrupted pack is visible"
    interrupted=$((interrupted + 1))
done
echo "   $interrupted of 16 were interrupted"
[ $interrupted -ge 3 ] || fail "no pack was interrupted: nothing was tested"
rm -rf tmp

if ! $PY -c 'import numpy' 2>/dev/null; then
    echo "SKIPPED: the comparisons with numpy: $PY has no numpy (apt: python3-numpy)" >&2
    exit 77
fi
echo "-- folders, tables and npz files against numpy"
timeout 300 $PY "$HERE/pack_check.py" || fail "pack_check.py"
echo "pack: all passed"

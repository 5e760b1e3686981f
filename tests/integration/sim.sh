#!/bin/bash
# wafertier sim: its figures in small worlds, its optimum against known values, traces of both formats, wrong ones. Usage: sim.sh WAFERTIER
set -u
W=$1
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-sim-XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
cd "$DIR" || exit 1
fail() {
    echo "FAILED: $*" >&2
    cat out err >&2 2>/dev/null
    exit 1
}
sim() { "$W" sim "$@" >out 2>err || fail "sim $*"; }
ratio() { awk -v p="$1" '$1 == p { print $NF }' out; }
hits() { awk -v p="$1" '$1 == p { print $2 }' out; }
within() { awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN { exit !(a >= b && a <= c) }' || fail "$4: $1 is not in $2..$3"; }

# Free bandwidth: the optimum. One job: nothing moves after the first epoch.
for jobs in 1 2 4 8; do
    for sizes in even lognormal; do
        sim --jobs $jobs --shards 500 --epochs 8 --cache 0.25 --sizes $sizes
        within "$(ratio wafertier)" 0.98 1.02 "$jobs jobs, $sizes"
    done
done
sim --jobs 1 --shards 500
grep -q '^churn 0.0000 of the cache' out && grep -q '^mover  *0 ' out || fail "one job moves nothing"
within "$(ratio fixed)" 0.9999 1.0001 "a fixed set is the optimum of one job"

# Twice the bandwidth that the optimum needs, and decisions that take a while.
for jobs in 2 8; do
    sim --jobs $jobs --shards 500 --epochs 8 --cache 0.25 --bandwidth 2x --sizes lognormal --react 2s
    within "$(ratio wafertier)" 0.98 1.10 "$jobs jobs, twice the need"
done
sim --jobs 4 --shards 500 --epochs 12 --cache 0.5 --bandwidth 2x
within "$(ratio wafertier)" 0.98 1.10 "a cold tier that is choked at first"
sim --jobs 4 --shards 500 --cache 0.15,0.1 --bandwidth 2x,free,free
within "$(ratio wafertier)" 0.98 1.10 "two tiers above cold"

# The optimum and LRU of 1000 shards, from another simulator: .4945 and .1415 hit for two jobs at a quarter, +-.006 over seeds.
sim --jobs 2 --shards 1000 --cache 0.25
within "$(hits belady)" 0.485 0.506 "belady"
within "$(hits lru)" 0.133 0.150 "lru"
sim --jobs 2 --seed 9 --shards 200 --json
cp out first
sim --jobs 2 --seed 9 --shards 200 --json
cmp -s out first || fail "the same seed gives other figures"
grep -q '"ratio"' out || fail "the JSON has no ratio"

# A loop over more than the tier holds, as text; a scan beside something hot, as records.
for round in $(seq 12); do for i in $(seq 400); do echo "$((round * 400 + i)) object-$i 1000"; done; done >loop.txt
sim --trace loop.txt --cache 0.25
within "$(hits wafertier)" 0.245 0.27 "a loop keeps a part"
within "$(hits lru)" 0 0.001 "LRU keeps nothing of it"
awk 'BEGIN { srand(3); for (i = 0; i < 60000; i++) print i, (i % 3 ? int(100 * rand() * rand()) : 100 + i % 20000), 10 }' >scan.txt
sim --trace scan.txt --cache 0.005
lru=$(hits lru)
ours=$(hits wafertier)
within "$ours" "$lru" 1 "a scan flushes nothing"
python=$(command -v python3) && "$python" - <<'PY'
import struct
with open("scan.txt") as text, open("scan.bin", "wb") as out:
    for line in text:
        time, name, size = line.split()
        out.write(struct.pack("<IQIq", int(time), int(name), int(size), -1))
PY
if [ -n "$python" ]; then
    cp out first
    sim --trace scan.bin --format oracle --cache 0.005
    cmp -s out first || fail "the same trace in two formats"
    head -c 100 scan.bin >cut.bin
    "$W" sim --trace cut.bin --format oracle >out 2>err && fail "a cut trace"
    grep -q 'is cut: record 5 has 4 of 24 bytes' err || fail "the message about a cut trace"
fi

refuse() { # MESSAGE ARGS...
    local message=$1
    shift
    "$W" sim "$@" >out 2>err && fail "sim $* is accepted"
    grep -q -- "$message" err || fail "sim $*: the message"
}
printf '1 a 10\n0 b 10\n' >back.txt
refuse 'earlier than the one before' --trace back.txt
printf '1 a ten\n' >word.txt
refuse 'word.txt line 1' --trace word.txt
: >empty.txt
refuse 'has no requests' --trace empty.txt
refuse 'No such file' --trace missing.txt
refuse '--cache 1.5' --cache 1.5
refuse '--cache 0.1,' --cache 0.1,
refuse '--bandwidth fast' --bandwidth fast
refuse 'at most 2 rates' --bandwidth free,free,free
refuse 'out of range' --jobs 0
sim --shards 1 --cache 0
sim --trace loop.txt --cache 0
within "$(hits wafertier)" 0 0 "no tier above cold"
echo "sim: all passed"

#!/usr/bin/env bash
# The README's first command, on small generated data: three epochs, each with every sample once; the second and third read nothing from
# cold when hot holds all; nothing is left behind. Arguments: the build folder, the source folder, and "servers" for the demo on Ceph and Redis.
set -euo pipefail
build=$1
source=$2
servers=${3:-}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() {
    echo "demo.sh: $*" >&2
    cat "$work/out" >&2
    exit 1
}

demo() { # arguments of the demo
    TMPDIR=$work WAFERTIER_BUILD=$build timeout 200 bash "$source/scripts/demo" ${servers:+--servers} "$@" >"$work/out" 2>&1 && return
    [ $? -ne 77 ] || {
        cat "$work/out" >&2 # which server is not installed
        exit 77
    }
    fail "the demo failed"
}

# rows of the first run: epoch samples distinct sum rate MB/s stall cold-reads cold-MB warm-reads warm-MB hot-reads hot-MB
rows() {
    awk '$1 ~ /^[123]$/ && NF == 13' "$work/out"
}

left_nothing() {
    for _ in $(seq 50); do
        pgrep -f "$work" >/dev/null || break
        sleep 0.1
    done
    pgrep -fa "$work" && fail "processes are left"
    [ -z "$(find "$work" -mindepth 1 ! -name out)" ] || fail "files are left: $(ls "$work")"
}

check() { # samples, pixel sum or ""
    [ "$(rows | wc -l)" -eq 6 ] || fail "expected six epochs"
    rows | while read -r epoch samples distinct sum _ _ _ cold _ warm _ hot _; do
        [ "$samples" -eq "$1" ] && [ "$distinct" -eq "$1" ] || fail "epoch $epoch gave $samples samples, $distinct distinct, not $1"
        [ -z "$2" ] || [ "$sum" -eq "$2" ] || fail "epoch $epoch: the pixels sum to $sum, not $2"
        [ $((cold + warm + hot)) -gt 0 ] || fail "epoch $epoch read nothing"
    done
    # On servers a loader may find the cold copy the cheaper one now and then: they share this machine.
    [ -z "$servers" ] || {
        [ "$(rows | awk '$1 > 1 { cold += $8; all += $8 + $10 + $12 } END { print (cold * 10 < all) }')" = 1 ] ||
            fail "epochs 2 and 3 read more than a tenth from cold"
        [ "$(rows | sed -n 2,3p | awk '{ hot += $12 } END { print (hot > 0) }')" = 1 ] || fail "nothing was read from hot"
        [ "$(rows | sed -n 5,6p | awk '{ warm += $10 } END { print (warm > 0) }')" = 1 ] || fail "nothing was read from warm"
        left_nothing
        return
    }
    # Hot holds all: epochs 2 and 3 are read from hot alone.
    rows | sed -n 2,3p | while read -r epoch _ _ _ _ _ _ cold _ warm _ hot _; do
        [ "$cold" -eq 0 ] && [ "$warm" -eq 0 ] && [ "$hot" -gt 0 ] || fail "epoch $epoch was not read from hot"
    done
    # Hot holds a quarter: it serves some, warm the rest, cold nothing.
    rows | sed -n 5,6p | while read -r epoch _ _ _ _ _ _ cold _ warm _ hot _; do
        [ "$cold" -eq 0 ] && [ "$warm" -gt 0 ] && [ "$hot" -gt 0 ] || fail "epoch $epoch was not read from warm and hot"
    done
    left_nothing
}

demo --size 16MiB
check 1024 ""

npz=${WAFERTIER_REAL_DATA:-}/wafermaps-faris-k/derived/mixedwm38_test_arr.npz
if [ -f "$npz" ]; then
    read -r count sum < <(/usr/bin/python3 -c "import numpy; a = numpy.load('$npz')['arr_0']; print(len(a), a.sum(dtype='u8'))")
    demo --data "$npz"
    check "$count" "$sum"
else
    echo "SKIPPED: real wafer maps (set WAFERTIER_REAL_DATA)"
fi

# Ctrl-C in the middle: nothing stays, no process either.
# (A background process of a script ignores SIGINT until it is told not to.)
TMPDIR=$work WAFERTIER_BUILD=$build env --default-signal=INT setsid bash "$source/scripts/demo" ${servers:+--servers} --size 64MiB >"$work/out" 2>&1 &
pid=$!
for _ in $(seq 600); do
    grep -q 'three epochs' "$work/out" && break
    sleep 0.1
done
kill -INT -- "-$pid"
rc=0
wait "$pid" || rc=$?
[ "$rc" -eq 130 ] || fail "after Ctrl-C the demo ended with $rc, not 130"
left_nothing

#!/bin/bash
# fsck: finds what was damaged, says nothing where all is well, repairs from right copies alone, and never beside a daemon.
# Usage: fsck.sh WAFERTIER WAFERTIERD
set -u
W=$1 D=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-fsck-XXXXXX") || exit 1
pid=
trap '[ -n "$pid" ] && kill $pid 2>/dev/null && wait $pid; rm -rf "$DIR"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$DIR"/out "$DIR"/err "$DIR"/log >&2 2>/dev/null
    exit 1
}
cd "$DIR" || exit 1
mkdir state
cat >w.conf <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tier "cold" { url = "file://$DIR/cold" }
tier "warm" { url = "file://$DIR/warm" capacity = "64MiB" }
tier "hot" { url = "file://$DIR/hot" capacity = "64MiB" }
CONF
export WAFERTIER_CONFIG=$DIR/w.conf

# fsck CODE [ARGUMENT...]: runs it, with this exit code
fsck() {
    local want=$1 code
    shift
    timeout 60 "$W" fsck "$@" >out 2>err
    code=$?
    [ "$code" -eq "$want" ] || fail "fsck $* ended with $code, not $want"
}
found() { # TIER FINDING NAME
    grep -qE "^$1 +$2 +$3" out || fail "no '$1 $2 $3'"
}
copy() { # TIER SHARD: as a move would have left it
    mkdir -p "$1/$(dirname "$2")" && cp "cold/$2" "$1/$2"
}
flip() { # FILE: one bit in its middle
    python3 - "$1" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(0, 2)
    f.seek(f.tell() // 2)
    byte = f.read(1)
    f.seek(-1, 1)
    f.write(bytes([byte[0] ^ 1]))
PY
}

"$W" gen --dataset wafers --samples 600 --shard-size 64KiB --codec tar --quiet 2>/dev/null || fail "gen"
"$W" gen --dataset others --samples 100 --quiet 2>/dev/null || fail "gen"
mapfile -t shard < <(cd cold && find wafers -name '*.tar' | sort)
[ "${#shard[@]}" -ge 8 ] || fail "too few shards"
for i in 1 2 3 4; do copy warm "${shard[i]}"; done
for i in 3 4 5 6; do copy hot "${shard[i]}"; done

fsck 0
grep -q '^2 data sets, .* all agrees$' out || fail "the sum"
grep -q 'is not compared' out || fail "it does not say that no daemon answers"
fsck 0 --data wafers
fsck 0 wafers others
fsck 1 nothing
grep -q "nothing" err || fail "the data set is not named"

# What a LIST shows, and what only reading does.
truncate -s -100 "hot/${shard[5]}"
flip "warm/${shard[1]}"
rm "cold/${shard[2]}"
rm "cold/${shard[7]}"
flip "cold/${shard[3]}"
fsck 1 wafers
found hot size "${shard[5]}"
found cold missing "${shard[2]}"
found cold missing "${shard[7]}"
grep -q corrupt out && fail "it cannot know of wrong bytes without reading"
grep -q '; 3 things are wrong$' out || fail "the count"
fsck 1 --data wafers
found warm corrupt "${shard[1]}"
found cold corrupt "${shard[3]}"
grep -q '; 5 things are wrong$' out || fail "the count with --data"
fsck 0 others

# Beside a daemon nothing is repaired; nor is it while somebody else holds the lock.
# (One that knows the copies would mend some of them by itself.)
grep -v 'tier "\(warm\|hot\)"' w.conf >cold.conf
timeout 100 "$D" --config cold.conf >log 2>&1 &
pid=$!
for _ in $(seq 100); do
    "$W" stats >/dev/null 2>&1 && break
    sleep 0.1
done
fsck 1 --repair --data
grep -q 'stop it' err || fail "it does not say what to do about the daemon"
grep -v '^control' w.conf >alone.conf
fsck 1 --repair --data --config alone.conf
grep -q 'the lock' err || fail "it does not respect the lock"
kill $pid && wait $pid
pid=

# The cold objects come back from right copies; damaged copies go; what has no right copy is named and left.
flip "hot/${shard[6]}"
cp "cold/${shard[6]}" kept
flip "cold/${shard[6]}"
fsck 1 --repair --data
found cold repair "${shard[2]}: put anew from tier warm"
found cold repair "${shard[3]}: put anew"
found hot repair "${shard[5]}: the damaged copy was removed"
found warm repair "${shard[1]}: the damaged copy was removed"
found cold repair "${shard[7]}: there is no right copy"
found hot repair "${shard[6]}: the damaged copy stays"
grep -q '4 repaired, 2 cannot be$' out || fail "the count of repairs"
[ -e "hot/${shard[5]}" ] && fail "the damaged copy is still there"
[ -e "hot/${shard[6]}" ] || fail "the last copy of a lost shard was removed"
for i in 2 3; do
    cmp -s "cold/${shard[i]}" "warm/${shard[i]}" || fail "shard $i was not put right"
done

# A right copy turns up again: all is well in the end.
cp kept "warm/${shard[6]}" 2>/dev/null || { copy warm "${shard[6]}" && cp kept "warm/${shard[6]}"; }
rm "hot/${shard[6]}"
fsck 1 --repair --data
found cold repair "${shard[6]}: put anew from tier warm"
"$W" gen --dataset wafers --samples 600 --shard-size 64KiB --codec tar --quiet --replace 2>/dev/null || fail "gen --replace"
fsck 0 --data
timeout 60 "$W" verify wafers >out 2>err || fail "verify after the repairs"

# A tier that is away is said, and not taken for an empty one.
chmod 000 hot && mv hot away && touch hot
fsck 1 wafers
grep -q 'hot cannot be checked' err || fail "a tier that is away"
rm hot && mv away hot && chmod 755 hot
echo "fsck: all passed"

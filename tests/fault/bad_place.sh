#!/bin/bash
# Places that fail: odd names and empty inputs, disks that are full (small tmpfs) in pack, in moves and under the daemon's state, rights that are
# withdrawn. After each: an error that says what to do, nothing half is visible, and what was there is still good.
# Usage: bad_place.sh BUILD. Without root the parts that mount are skipped, loudly.
set -u
BIN=$(realpath "$1/bin") || exit 1
W=$BIN/wafertier
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-place-XXXXXX") || exit 1
pid=
mounts=
cleanup() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid"
    for m in $mounts; do umount -l "$m" 2>/dev/null; done
    rm -rf "$DIR"
}
trap cleanup EXIT
cd "$DIR" || exit 1
chmod 755 "$DIR"
unset WAFERTIER_CONFIG

fail() {
    echo "FAILED: $*" >&2
    tail -n 30 log out err >&2 2>/dev/null
    exit 1
}
expect() { # CODE command...
    local want=$1 got
    shift
    timeout 120 "$@" >out 2>err
    got=$?
    [ "$got" = "$want" ] || fail "exit code $got, not $want: $*"
}
says() { grep -q -e "$1" out err || fail "no '$1' in the output"; }
objects() { find "$1" -type f ! -name '*.lock' 2>/dev/null | wc -l; }

# A version 1.0 npy of 8x8 u8, filled with the character $2.
npy() {
    local head="{'descr': '|u1', 'fortran_order': False, 'shape': (8, 8), }"
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$head"
        head -c 64 /dev/zero | tr '\0' "$2"
    } >"$1"
}

echo "-- odd names"
mkdir -p in/deep cold
npy 'in/d.o.t.s.npy' a
npy 'in/..hidden..npy' b
npy $'in/\xc3\xa4 \xe6\x99\xb6\xe5\x9c\x86 blank.npy' c
npy 'in/__two.npy' d
npy 'in/100%.npy' e
npy $'in/tab\tand\nline.npy' f
npy $'in/not\xffutf8.npy' g
ln -s .. in/deep/up # a loop, if it were followed
expect 0 "$W" pack in --dataset odd --to cold --lot '../..' --wafer $'\xc3\xa9/x' --keep-going
expect 0 "$W" verify odd --from cold
"$W" ls odd --samples --from cold | cut -f1 >keys
[ "$(wc -l <keys)" -ge 6 ] || fail "samples are missing"
grep -qvE '^[A-Za-z0-9_+=%~@-]+/[A-Za-z0-9_+=%~@-]+/[A-Za-z0-9_+=%~@-]+$' keys && fail "a key with other characters"
[ "$(sort -u keys | wc -l)" = "$(wc -l <keys)" ] || fail "keys are not unique"
while read -r key; do
    "$W" cat odd "$key" --raw --from cold -o raw && [ "$(stat -c %s raw)" = 64 ] || fail "cat $key"
done <keys
[ -z "$(find "$DIR/.." -maxdepth 1 -newer keys -name '*odd*')" ] || fail "something was written outside"

printf 'file,label,lot,wafer\nd.o.t.s.npy,x,../../../../etc,..\n__two.npy,x,/abs,.\n' >table.csv
expect 0 "$W" pack in/d.o.t.s.npy in/__two.npy --dataset climbs --to cold --labels table.csv
expect 0 "$W" verify climbs --from cold
"$W" ls climbs --samples --from cold | cut -f1 | grep -q '\.\.' && fail "a key that climbs"
for name in '../x' '' 'A' '.x' 'a/b' $'\xc3\xa4' '-x' "$(printf 'a%.0s' $(seq 70))"; do
    timeout 20 "$W" pack in --dataset "$name" --to cold >out 2>err && fail "data set name '$name'"
done

echo "-- nothing to pack"
mkdir empty
expect 1 "$W" pack empty --dataset none --to cold
says "no "
expect 1 "$W" pack in/nowhere --dataset none --to cold
: >empty/zero.npy
expect 1 "$W" pack empty --dataset none --to cold
says "zero.npy"
[ -e cold/none ] && [ "$(objects cold/none)" != 0 ] && fail "objects of a pack that failed"

echo "-- a data set without samples is refused by whoever reads it"
cp -r cold bare
manifest=bare/odd/manifest.json
chmod u+w "$manifest"
sed -i -E 's/"(shards|samples|stored_bytes|tar_bytes|pixel_bytes|labelled|lots|wafers)": [0-9]+/"\1": 0/; s/"index": \[.*/"index": []/' "$manifest"
timeout 20 "$W" verify odd --from bare >out 2>err && fail "verify believes an empty data set"
printf 'tier "cold" { url = "file://%s/bare" read_only = true }\n' "$DIR" >bare.conf
timeout 20 "$BIN/epochs" bare.conf odd 4 1 >out 2>err && fail "a loader opens an empty data set"
[ -s err ] || fail "no message"

if [ "$(id -u)" != 0 ] || ! mkdir small || ! mount -t tmpfs -o size=3m none small; then
    echo "SKIPPED: only root can mount a small tmpfs: full disks and withdrawn rights are not tested" >&2
    exit 77
fi
mounts=$DIR/small

echo "-- pack into a full disk"
for codec in tar zstd; do
    expect 1 "$W" gen --dataset big --kind sem --size 16MiB --codec $codec --to "$DIR/small"
    says "full\|No space\|bytes are left"
    [ "$(objects small)" = 0 ] || fail "$(objects small) objects are left of a pack that failed"
done
mount -o remount,size=64m small || fail "remount"
expect 0 "$W" gen --dataset big --kind sem --size 16MiB --codec tar --to "$DIR/small"
expect 0 "$W" verify big --from small
before=$(objects small)
head -c 60m /dev/zero >small/ballast 2>/dev/null
expect 1 "$W" gen --dataset big --kind sem --size 16MiB --seed 9 --codec tar --to "$DIR/small" --replace
rm small/ballast
expect 0 "$W" verify big --from small # the old generation is as it was
[ "$(objects small)" = "$before" ] || fail "objects are left of a replacement that failed"

echo "-- moves into a full disk; a state folder that is full"
mkdir hot state
mount -t tmpfs -o size=2m none hot && mount -t tmpfs -o size=256k none state || fail "mount"
mounts="$mounts $DIR/hot $DIR/state"
cat >w.conf <<C
state_folder = "$DIR/state"
control = "unix:$DIR/s"
report_interval = 100ms
tick = 200ms
policy { min_stay = 0s }
mover { backoff = 100ms }
tier "cold" { url = "file://$DIR/small" }
tier "hot" { url = "file://$DIR/hot" capacity = "1GiB" }
C
timeout 100 "$BIN/wafertierd" --config w.conf >log 2>&1 &
pid=$!
for _ in $(seq 100); do "$W" stats --control s >/dev/null 2>&1 && break; sleep 0.1; done
head -c 1m /dev/zero >hot/ballast # room that the daemon does not know of is gone
head -c 1m /dev/zero >state/ballast 2>/dev/null
cat >loader.conf <<C
control = "unix:$DIR/s"
tier "cold" { url = "file://$DIR/small" read_only = true }
tier "hot" { url = "file://$DIR/hot" read_only = true }
C
expect 0 "$BIN/epochs" loader.conf big 16 4 'sleep 1'
for _ in $(seq 50); do
    find hot/.wafertier.tmp -type f 2>/dev/null | grep -q . || break
    sleep 0.1
done
copies=0
for f in $(cd hot && find . -name '*.tar' -path '*/shards/*'); do
    # The daemon goes on: a copy may leave between these two looks.
    cmp -s "hot/$f" "small/$f" || [ ! -e "hot/$f" ] || fail "the copy hot/$f is not the shard"
    copies=$((copies + 1))
done
[ $copies -gt 0 ] || fail "nothing was moved"
expect 0 "$W" stats --control s --json
grep -q '"moves"' out || fail "no stats"
kill -0 $pid || fail "the daemon ended"
rm state/ballast
kill -TERM $pid && wait $pid
code=$?
pid=
[ $code = 0 ] || fail "the daemon ended with $code"
grep -q 'waits for room: tier hot' log || fail "the log does not say that the tier was full"
grep -q "after a restart the daemon will have to look" log || fail "the log does not say that the state folder was full"
expect 0 "$W" verify big --from small

echo "-- rights that are withdrawn"
other="setpriv --reuid=65534 --regid=65534 --clear-groups"
chmod -R go+rX small cold
install -m 755 "$W" w # the build folder may be closed to others
expect 1 $other "$DIR/w" gen --dataset more --samples 10 --to "$DIR/cold"
says "ermission denied"
[ -e cold/more ] && fail "something was written without the right to"
expect 0 $other "$DIR/w" verify odd --from cold
find cold/odd/shards -type f -exec chmod 600 {} +
expect 1 $other "$DIR/w" verify odd --from cold
says "ermission denied"
expect 0 "$W" verify odd --from cold
echo "bad_place: all passed"

#!/bin/bash
# The commands of docs/operations.md, "Seeing and steering", run as they are written on a real daemon, but for lots that have other names here and
# for those that would go on for ever. Usage: steering.sh BUILD_FOLDER SOURCE_FOLDER
set -u
BUILD=$1 SOURCE=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-steering-XXXXXX") || exit 1
pid=
trap '[ -n "$pid" ] && kill $pid 2>/dev/null && wait $pid; rm -rf "$DIR"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$DIR"/out "$DIR"/log >&2 2>/dev/null
    exit 1
}
cd "$DIR" || exit 1
export PATH=$BUILD/bin:$PATH WAFERTIER_CONFIG=$DIR/w.conf
mkdir state
cat >w.conf <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tier "cold" { url = "file://$DIR/cold" }
tier "warm" { url = "file://$DIR/warm" capacity = "64MiB" }
tier "hot" { url = "file://$DIR/hot" capacity = "32MiB" }
CONF
wafertier gen --dataset wafers --samples 500 --quiet 2>/dev/null || fail "gen"
timeout 200 wafertierd --config w.conf >log 2>&1 &
pid=$!
for _ in $(seq 200); do
    wafertier stats --json 2>/dev/null | grep -q '"active": true' && break
    sleep 0.1
done

sed -n '/^## Seeing and steering/,/^## Steering/p' "$SOURCE/docs/operations.md" | sed -n 's/^    \(wafertier [^#]*[^# ]\) *\(#.*\)*$/\1/p' |
    sed 's#/L1#/lot0000#; s#/W03#/w00#; s#^wafertier top$#& --once#; s#--watch$#& -n 1#; s#events$#& --since 0 -n 1#' >commands
[ "$(wc -l <commands)" -ge 12 ] || fail "docs/operations.md has too few commands"
while read -r command; do
    timeout 60 bash -c "$command" >out 2>&1 </dev/null || fail "'$command' of docs/operations.md"
    [ -s out ] || fail "'$command' says nothing"
done <commands

echo "steering: all passed"

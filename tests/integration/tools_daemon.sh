#!/bin/bash
# The command line beside a running daemon: pack by configuration, the daemon learns of it, stats shows it. Usage: tools_daemon.sh WAFERTIER WAFERTIERD
set -u
W=$1 D=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-td-XXXXXX") || exit 1
pid=
trap '[ -n "$pid" ] && kill $pid 2>/dev/null && wait $pid; rm -rf "$DIR"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$DIR"/log "$DIR"/out "$DIR"/err >&2 2>/dev/null
    exit 1
}
mkdir "$DIR/state"
cat >"$DIR/w.conf" <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tier "cold" { url = "file://$DIR/cold" }
tier "hot" { url = "file://$DIR/hot" capacity = "64MiB" }
CONF
cd "$DIR" || exit 1
export WAFERTIER_CONFIG=$DIR/w.conf

"$W" gen --dataset before --samples 300 --quiet 2>err || fail "gen without a daemon"
grep -q "note: the daemon does not know of 'before'" err || fail "no note about the daemon"
"$W" stats >out 2>err && fail "stats without a daemon"

timeout 100 "$D" --config w.conf >log 2>&1 &
pid=$!
for _ in $(seq 100); do
    "$W" stats --json >out 2>err && break
    sleep 0.1
done
"$W" gen --dataset after --samples 300 --quiet 2>err || fail "gen beside the daemon"
[ -s err ] && fail "gen beside the daemon complains"
curl -s --unix-socket s http://localhost/v1/datasets >out || fail "curl"
grep -q '"after"' out || fail "the daemon was not told of the data set"
"$W" stats >out 2>err || fail "stats"
grep -q '^cold  *up' out && grep -q '^hot  *up .*64.0 MiB' out && grep -q '^reads  0 ' out || fail "the table of stats"
"$W" stats --control s --json >out 2>err && grep -q '"tiers"' out || fail "stats --control"
"$W" verify after >out 2>err && grep -q 'all good' out || fail "verify by configuration"
"$W" verify after --tier hot >out 2>err && grep -q 'not in this tier' out || fail "verify of the hot tier"
"$W" verify after --tier tepid >out 2>err && fail "a tier that is not there"
grep -q "has no tier 'tepid'" err || fail "the message about the tier"
echo "tools_daemon: all passed"

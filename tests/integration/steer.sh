#!/bin/bash
# The verbs that steer and show a real daemon: pins, quotas, warm and evict by hand, reload, events, shards, jobs, moves; their exit codes with
# and without a daemon, and that "done" is said only when it is so: what lies in the tiers is looked at beside the daemon, by its files.
# Usage: steer.sh WAFERTIER WAFERTIERD PACED
set -u
W=$1 D=$2 PACED=$3
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-steer-XXXXXX") || exit 1
pid=    # of timeout, whose child is the daemon
daemon= # its own
other=
finish() {
    for p in $daemon $pid $other; do
        kill -CONT "$p" 2>/dev/null
        kill "$p" 2>/dev/null && wait "$p" 2>/dev/null
    done
    rm -rf "$DIR"
}
trap finish EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$DIR"/out "$DIR"/err "$DIR"/log >&2 2>/dev/null
    exit 1
}
cd "$DIR" || exit 1
mkdir state
export WAFERTIER_CONFIG=$DIR/w.conf

configure() { # HOT-CAPACITY HOT-FILTER [LINE]
    cat >w.conf <<CONF
${3:-}
state_folder = "$DIR/state"
control = "unix:$DIR/s"
report_interval = "100ms"
tick = "200ms"
policy { min_stay = "0s" }
mover { backoff = "50ms" retries = 2 }
tier "cold" { url = "file://$DIR/cold" }
tier "warm" { url = "file://$DIR/warm" capacity = "64MiB" }
tier "hot" { url = "file://$DIR/hot" capacity = "$1" filter = "$2" }
CONF
}
start() {
    timeout 250 "$D" --config w.conf >>log 2>&1 &
    pid=$!
    for _ in $(seq 200); do
        daemon=$(awk "{ print \$1 }" "/proc/$pid/task/$pid/children" 2>/dev/null)
        "$W" stats --json 2>/dev/null | grep -q '"active": true' && return
        sleep 0.05
    done
    fail "the daemon does not answer"
}
stop() { # [SIGNAL]
    kill "-${1:-TERM}" "$daemon"
    wait "$pid" 2>/dev/null
    pid=
    daemon=
}
w() { # CODE VERB [ARGUMENT...]: runs it, with this exit code
    local want=$1 code
    shift
    timeout 60 "$W" "$@" >out 2>err
    code=$?
    [ "$code" -eq "$want" ] || fail "wafertier $* ended with $code, not $want"
}
says() { # FILE PATTERN
    grep -qE -e "$2" "$1" || fail "no '$2' in what it says"
}
count() { # TIER DATASET: objects in the tier's folder
    find "$1/$2" -name '*.tar*' 2>/dev/null | wc -l
}
until_true() { # WHAT COMMAND...
    local what=$1
    shift
    for _ in $(seq 200); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    fail "waited in vain: $what"
}

configure 64MiB ""
"$W" gen --dataset wafers --samples 600 --shard-size 32KiB --codec tar --quiet 2>/dev/null || fail "gen"
total=$(count cold wafers)
[ "$total" -ge 40 ] || fail "only $total shards"
lot=$("$W" ls wafers --samples 2>/dev/null | head -n 1 | cut -d/ -f1)

# ---- without a daemon, and wrong command lines ----
for verb in stats jobs moves events reload pin quota warm "shards wafers" "unpin wafers" "evict wafers"; do
    # shellcheck disable=SC2086
    w 3 $verb
    says err "unix:$DIR/s: nobody listens"
done
w 3 jobs --control nothing
w 2 jobs something
w 2 shards
w 2 pin wafers/
w 2 pin wafers/a/b/c
w 2 warm --wait
w 2 warm --follow x7
w 2 quota wafers
w 2 quota wafers 0
w 2 quota Wafers 1MiB
w 2 evict wafers --hold never
w 2 events --since yesterday

# ---- shards, jobs, moves, stats ----
start
w 0 shards wafers
[ "$(($(wc -l <out) - 1))" -eq "$total" ] || fail "shards: $(wc -l <out) lines of $total"
w 0 shards "wafers/$lot" --json -n 5
[ "$(jq -s 'map(.number) | length' out)" -eq 5 ] || fail "shards --json -n 5"
w 1 shards wafers/nothing
says err "nothing"
w 1 shards nothing
w 0 stats --watch --json -n 3 -i 100ms
[ "$(jq -s 'length' out)" -eq 3 ] || fail "stats --watch"
w 0 jobs
says out 'no job reports'
timeout 100 "$PACED" w.conf wafers 1 40 16 20 >paced.out 2>&1 &
other=$!
until_true "a job" bash -c "'$W' jobs --json | jq -e '.jobs[0].reads > 0'"
w 0 jobs
says out '^j1-.* wafers .* known '
w 0 moves
says out 'running, '
kill $other && wait $other 2>/dev/null
other=

# ---- pins, quotas: over a kill ----
w 0 evict wafers --wait --quiet
says out "done +$total of $total shards|done .* of .* shards"
[ "$(($(count hot wafers) + $(count warm wafers)))" -eq 0 ] || fail "evict said done with copies left"
w 1 pin wafers --tier tepid
says err tepid
w 0 pin wafers --tier hot
w 0 quota wafers 1GiB --tier warm
until_true "all that is pinned in the hot tier" bash -c "[ \$(find hot/wafers -name '*.tar*' | wc -l) -eq $total ]"
w 1 evict wafers --tier hot
says err 'pin'
stop KILL
start
w 0 pin
says out "^wafers +hot "
until_true "the pins counted after the kill" bash -c "'$W' pin | grep -q '$total of $total shards there'"
w 0 quota
says out '^wafers +warm .* of 1.0 GiB used'
w 0 quota wafers none --tier warm
w 0 quota
says out 'no data set has a quota'
w 0 unpin wafers
says out 'removed: 1'
w 1 unpin wafers
w 0 pin
says out 'nothing is pinned'

# ---- warm: true progress, and done when it is done ----
w 0 evict wafers --wait --quiet --hold 60s
stop
configure 64MiB "delay write=40ms"
start
timeout 60 "$W" warm wafers --tier hot --wait >out 2>err
code=$?
there=$(count hot wafers)
[ "$code" -eq 0 ] && [ "$there" -eq "$total" ] || fail "warm --wait ended with $code and $there of $total shards"
says out " done +$total of $total shards"
w 0 fsck wafers --data
w 0 evict wafers --tier hot --wait
timeout 60 "$W" warm wafers --tier hot --wait >out 2>err &
other=$!
until_true "a request that is half done" bash -c "'$W' warm --json | jq -e '.requests[0] | .state == \"running\" and .shards.done > 0 and .shards.done < .shards.total'"
seen=$("$W" warm --json | jq '.requests[0].shards.done')
[ "$seen" -le "$(count hot wafers)" ] || fail "it counts $seen as done, and fewer are there"
kill -INT $other
wait $other
[ $? -eq 130 ] || fail "an interrupted wait"
other=
id=$("$W" warm --json | jq -r '.requests[0].id')
says err "$id goes on"
w 0 warm --follow "$id" --quiet
[ "$(count hot wafers)" -eq "$total" ] || fail "--follow came back early"
w 0 evict wafers --tier hot --wait
w 0 warm wafers --tier hot
id=$(awk '{ print $1 }' out)
w 0 warm --cancel "$id"
says out canceled
w 1 warm --follow "$id"
w 1 warm --follow w999

# ---- warm that cannot be: at once, after a while, and with a daemon that goes ----
w 1 evict nothing --wait
stop
configure 100KiB ""
start
w 1 warm wafers --tier hot
says err 'more in the tier'
stop
rm -rf hot
configure 64MiB "fault write=IO:1"
start
w 1 warm wafers --tier hot --wait --patience 2s --quiet
says out ' failed .*0 of '
says out '^  [0-9]+ shards: '
stop
configure 64MiB "delay write=100ms"
start
timeout 60 "$W" warm wafers --tier hot --wait >out 2>err &
other=$!
until_true "a running request" bash -c "'$W' warm --json | jq -e '.requests[0].state == \"running\"'"
stop KILL
wait $other
code=$?
other=
[ "$code" -eq 3 ] || fail "a daemon that is killed: exit $code"

# ---- reload ----
configure 64MiB ""
start
w 0 reload
says out 'no option has changed'
configure 32MiB "" 'log_level = "debug"'
w 0 reload
says out 'changed: .*log_level'
configure 32MiB "" 'no_such = 1'
w 1 reload
says err no_such
configure 32MiB "" 'log_level = "debug"'
sed -i 's#"64MiB"#"65MiB"#; s#^control = .*#control = "unix:'"$DIR"'/t"#' w.conf
w 1 reload --control s
says err control
configure 32MiB "" 'log_level = "debug"'
w 0 reload
says out 'no option has changed'

# ---- events; what the daemon believes, and what is there ----
w 0 events --since 0 -n 3
says out '^1 .* leader'
timeout 60 "$W" events --json >events.out 2>err &
other=$!
sleep 0.5
w 0 warm wafers --tier hot --wait --quiet
until_true "the event of the end" grep -q '"warm_done"' events.out
grep -q '"move_done"' events.out || fail "no event of a move"
first=$(find hot/wafers -name '*.tar' | sort | head -n 1)
rm "$first"
w 1 fsck wafers
says out "^hot +lost +${first#hot/}"
w 0 evict wafers --wait --quiet
mkdir -p "$(dirname "$first")"
cp "cold/${first#hot/}" "$first"
w 1 fsck wafers
says out "^hot +unknown +${first#hot/}"
stop
wait $other
[ $? -eq 3 ] || fail "the end of the stream"
other=
echo "steer: all passed"

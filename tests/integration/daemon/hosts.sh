#!/bin/bash
# Jobs of two other hosts (network namespaces of their own) on one daemon, by TCP with TLS and a token; what they may, and what they may not.
# usage: hosts.sh BIN PACED
set -u
BIN=$1 PACED=$2
[ "$(id -u)" = 0 ] || { echo "SKIPPED: only root can make network namespaces"; exit 77; }
for tool in ip openssl curl; do
    command -v $tool >/dev/null || { echo "SKIPPED: no $tool on this machine"; exit 77; }
done
name=wt$$
net=10.213.$(($$ % 250))
ip netns add "$name-a" 2>/dev/null || { echo "SKIPPED: this machine lets nobody make network namespaces"; exit 77; }
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-hosts-XXXXXX") || exit 1
pids=()
clean() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
    wait
    for h in a b; do ip netns del "$name-$h" 2>/dev/null; done
    for h in a b; do ip link del "$name$h" 2>/dev/null; done
    rm -rf "$DIR"
}
trap clean EXIT INT TERM
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$DIR"/*.log >&2
    exit 1
}
cd "$DIR" || exit 1

# host NAME FIRST: a namespace whose veth has $net.(FIRST+1), ours $net.FIRST
host() {
    [ "$1" = a ] || ip netns add "$name-$1" || fail "netns"
    ip link add "$name$1" type veth peer name eth0 netns "$name-$1" || fail "veth"
    ip addr add "$net.$2/30" dev "$name$1" && ip link set "$name$1" up || fail "address"
    ip netns exec "$name-$1" ip addr add "$net.$(($2 + 1))/30" dev eth0 || fail "address"
    ip netns exec "$name-$1" ip link set eth0 up || fail "link"
}
host a 1
host b 5

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca >openssl.log 2>&1 || fail "ca"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out csr.pem -subj /CN=daemon >>openssl.log 2>&1 || fail "key"
printf 'subjectAltName=IP:%s.1,IP:%s.5\n' "$net" "$net" >san
openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out cert.pem >>openssl.log 2>&1 || fail "cert"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other >>openssl.log 2>&1
openssl rand -hex 32 >token
echo not-the-token-not-the-token >wrong
chmod 600 key.pem token wrong

mkdir cold warm hot
"$BIN/wafertier" gen -d wafers -u "file://$DIR/cold" --kind map -n 2000 --lots 2 --wafers 4 -s 32KiB --codec tar --quiet || fail "gen"
port=$((20000 + $$ % 20000))
tiers="tier cold { url = \"file://$DIR/cold\" }
tier warm { url = \"file://$DIR/warm\" }
tier hot { url = \"file://$DIR/hot\" capacity = \"1MiB\" }"
cat >d.conf <<CONF
state_folder = "$DIR/state"
control = "unix:$DIR/s"
tick = 100ms
report_interval = 100ms
listen {
    address = ":$port"
    cert_file = "$DIR/cert.pem"
    key_file = "$DIR/key.pem"
    token_file = "$DIR/token"
}
$tiers
CONF
for h in a:1 b:5 wrong:1 other:1; do
    token=token ca=ca.pem
    [ "${h%:*}" = wrong ] && token=wrong
    [ "${h%:*}" = other ] && ca=other.pem
    cat >"${h%:*}.conf" <<CONF
control = "https://$net.${h#*:}:$port"
control_token_file = "$DIR/$token"
control_ca = "$DIR/$ca"
$tiers
CONF
done

chmod 644 token
timeout 5 "$BIN/wafertierd" --config d.conf >refused.log 2>&1 && fail "a token that everybody can read was taken"
grep -q "can be read by everybody" refused.log || fail "the reason is not told"
chmod 600 token
timeout 100 "$BIN/wafertierd" --config d.conf 2>d.log &
pids+=($!)
daemon=$!
own() { curl -sS -m 10 --unix-socket s "http://localhost$1"; }
for _ in $(seq 100); do own /healthz 2>/dev/null | grep -q '"ok"' && break; sleep 0.1; done
own /healthz | grep -q '"ok"' || fail "the daemon is not well"

# ask HOST ADDRESS ARGUMENT...: the status that a client on that host gets
ask() {
    local h=$1 at=$2
    shift 2
    ip netns exec "$name-$h" curl -s -m 10 -o body -w '%{http_code}' --cacert ca.pem "$@" "https://$net.$at"
}
auth="Authorization: Bearer $(cat token)"
[ "$(ask a "1:$port/v1/stats" -H "$auth")" = 200 ] || fail "statistics are not shown: $(cat body)"
[ "$(ask b "5:$port/metrics" -H "$auth")" = 200 ] || fail "metrics are not shown"
[ "$(ask a "1:$port/v1/stats")" = 401 ] || fail "no token is needed"
[ "$(ask a "1:$port/v1/stats" -H "Authorization: Bearer $(cat wrong)")" = 401 ] || fail "a wrong token is taken"
[ "$(ask a "1:$port/v1/stats" -H "${auth}0")" = 401 ] || fail "a longer token is taken"
for what in pin unpin warm evict quota reload datasets; do
    [ "$(ask a "1:$port/v1/$what" -H "$auth" -d '{"dataset": "wafers", "name": "wafers"}')" = 403 ] || fail "another host may $what"
done
[ "$(ip netns exec "$name-a" curl -s -m 5 -o body -w '%{http_code}' "http://$net.1:$port/v1/stats" -H "$auth")" = 000 ] || fail "it answers without TLS"
ip netns exec "$name-a" curl -s -m 5 --tls-max 1.1 --cacert ca.pem -o body "https://$net.1:$port/healthz" -H "$auth" && fail "TLS 1.1 is spoken"

# Events follow by TLS too: from before, and while the jobs run.
ip netns exec "$name-b" curl -sN -m 30 --cacert ca.pem -H "$auth" "https://$net.5:$port/v1/events?since=0" >events &
pids+=($!)

# Two jobs, at the same time, for a few seconds.
for h in a b; do
    ip netns exec "$name-$h" timeout 60 "$PACED" $h.conf wafers ${#pids[@]} 3 64 25 >"$h.log" 2>&1 &
    pids+=($!)
done
for _ in $(seq 100); do
    own /v1/jobs >jobs
    [ "$(grep -o '"order":"known"' jobs | wc -l)" = 2 ] && break
    sleep 0.05
done
[ "$(grep -o '"order":"known"' jobs | wc -l)" = 2 ] || fail "two jobs do not report: $(cat jobs)"
wait "${pids[2]}" && wait "${pids[3]}" || fail "a job failed"
for kind in leader dataset job_registered move_done job_ended; do
    for _ in $(seq 50); do grep -q "\"kind\":\"$kind\"" events && break; sleep 0.1; done
    grep -q "\"kind\":\"$kind\"" events || fail "event $kind did not come to the other host: $(tail -3 events)"
done
reads=$(own /v1/stats | sed 's/.*"reads":{"total":\([0-9]*\).*/\1/')
[ "$reads" -gt 100 ] || fail "only $reads reads were reported"
own /v1/jobs | grep -q '"jobs":\[\]' || fail "a job did not say goodbye"

ip netns exec "$name-a" timeout 30 "$BIN/wafertier" doctor --config a.conf >doctor.out 2>&1
grep -q "wafertierd .*: ok" doctor.out || fail "doctor does not reach the daemon: $(cat doctor.out)"
ip netns exec "$name-a" timeout 30 "$BIN/wafertier" doctor --config wrong.conf >doctor.out 2>&1
grep -q "refuses the token" doctor.out || fail "doctor does not tell that the token is wrong: $(cat doctor.out)"

tool() { ip netns exec "$name-a" timeout 30 "$BIN/wafertier" "$@" >tool.out 2>&1; }
tool stats --config a.conf --json || fail "stats from another host: $(cat tool.out)"
grep -q '"active": *true' tool.out || fail "stats from another host: $(cat tool.out)"
tool jobs --config a.conf --control "https://$net.1:$port" || fail "jobs from another host: $(cat tool.out)"
tool pin wafers --config a.conf && fail "a pin was taken from another host"
grep -q "only jobs are taken" tool.out || fail "it is not told why: $(cat tool.out)"
tool stats --config wrong.conf && fail "statistics are shown for a wrong token"

# Whom the daemon, or who the daemon, does not trust: the job goes on by itself.
for h in wrong other; do
    ip netns exec "$name-a" timeout 60 "$PACED" $h.conf wafers 1 1 64 1 >$h.log 2>&1 || fail "a job without a daemon ($h) failed"
done
[ "$(own /v1/stats | sed 's/.*"reads":{"total":\([0-9]*\).*/\1/')" = "$reads" ] || fail "a job with a wrong token was heard"

# A new token comes with a reload.
mv token token.old
openssl rand -hex 32 >token && chmod 600 token
kill -HUP $daemon
for _ in $(seq 50); do
    [ "$(ask a "1:$port/v1/stats" -H "Authorization: Bearer $(cat token)")" = 200 ] && break
    sleep 0.1
done
[ "$(ask a "1:$port/v1/stats" -H "$auth")" = 401 ] || fail "the old token is taken after a reload"
auth="Authorization: Bearer $(cat token)"

# So does a new certificate, while a connection with the old one stays open; one that is none changes nothing.
serial() { ip netns exec "$name-a" openssl s_client -connect "$net.1:$port" </dev/null 2>/dev/null | openssl x509 -noout -serial 2>/dev/null; }
old=$(serial)
[ -n "$old" ] || fail "the certificate cannot be seen"
ip netns exec "$name-b" curl -sN -m 30 --cacert ca.pem -H "$auth" "https://$net.5:$port/v1/events" >later &
pids+=($!)
for _ in $(seq 50); do own /v1/stats | grep -q '"event_streams":[1-9]' && break; sleep 0.1; done
cp cert.pem cert.old
echo "no certificate" >cert.pem
reload() { curl -sS -m 10 --unix-socket s -d '{}' http://localhost/v1/reload; } # timeout(1) passes SIGHUP on only once
reload | grep -q '"error":".*is the key the certificate' || fail "a certificate that is none was taken"
grep -q "nothing was reloaded" d.log || fail "nothing is said about a certificate that is none"
[ "$(serial)" = "$old" ] || fail "the certificate changed though the reload failed"
openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out cert.new >>openssl.log 2>&1 && mv cert.new cert.pem
reload | grep -q '"changed"' || fail "a new certificate was not taken"
for _ in $(seq 50); do [ "$(serial)" != "$old" ] && break; sleep 0.1; done
[ "$(serial)" = "serial=$(openssl x509 -in cert.pem -noout -serial | cut -d= -f2)" ] || fail "the new certificate is not shown: $(serial)"
[ "$(ask a "1:$port/v1/stats" -H "$auth")" = 200 ] || fail "nobody is served with the new certificate"
for _ in $(seq 50); do grep -q '"kind":"reload"' later && break; sleep 0.1; done
[ "$(grep -c '"kind":"reload"' later)" -ge 2 ] || fail "a connection with the old certificate did not go on: $(cat later)"
kill "${pids[-1]}"
[ "$(ask b "5:$port/healthz" -H "$auth")" = 200 ] || fail "the daemon is not well without the old connection"
kill $daemon && wait $daemon || fail "the daemon did not end well"
echo "two hosts, $reads reads reported: all passed"

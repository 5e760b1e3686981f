#!/usr/bin/env bash
# The README under test: its C program compiles against what the build installs and reads a data set to the end; its commands run as they are
# written (on a configuration moved into a folder of the test's own); files that it names exist.
#   readme.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/wt-readme-XXXXXX")
shm=$(mktemp -d /dev/shm/wt-readme-XXXXXX)
daemon=
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    [ -z "$daemon" ] || wait "$daemon" 2>/dev/null || true
    rm -rf -- "$work" "$shm"
}
trap finish EXIT
fail() {
    echo "readme.sh: $*" >&2
    exit 1
}

cd "$source"
head -n 20 README.md | grep -q 'bash scripts/demo' || fail "the first screen does not name scripts/demo"
head -n 20 README.md | grep -q 'bash scripts/test' || fail "the first screen does not name scripts/test"
for file in $(grep -oh '](\(docs\|config\|examples\)[^)]*)' README.md | tr -d '()]') config/local.conf config/loader.conf config/wafertierd.conf; do
    [ -e "$file" ] || fail "README names $file, which is not there"
done

cmake --install "$build" --prefix "$work/usr" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake --install failed"; }
lib=$(dirname "$(find "$work/usr" -name 'libwaferloader.so.0' -print -quit)")
export PATH=$build/bin:$PATH LD_LIBRARY_PATH=$lib PKG_CONFIG_PATH=$lib/pkgconfig

cd "$work"
mkdir cold warm state "$shm/hot"
sed -e "s#/var/lib/wafertier#$work#; s#/dev/shm/wafertier#$shm/hot#; s#/run/wafertier#$work#" "$source/config/local.conf" >local.conf

# The commands below "By hand", but for building, installing and the daemon, exactly as written; fewer samples where sanitizers are slow.
sed -n '/^## By hand/,/^## What/p' "$source/README.md" | grep '^wafertier ' | sed 's/ *#.*//; s/20000/2000/' >commands
[ "$(wc -l <commands)" -ge 4 ] || fail "README has too few commands"
wafertierd --config local.conf 2>daemon.log &
daemon=$!
for _ in $(seq 100); do
    [ -S control.sock ] && break
    kill -0 "$daemon" || { cat daemon.log; fail "the daemon did not start"; }
    sleep 0.1
done
while read -r command; do
    bash -c "$command" >out 2>&1 || { cat out; fail "'$command' failed"; }
    [ -s out ] || fail "'$command' printed nothing"
done <commands

awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >train.c
[ "$(wc -l <train.c)" -gt 15 ] || fail "README has no C program"
# shellcheck disable=SC2046,SC2086
cc -std=c11 -Wall -Wextra -Werror train.c -o train $(pkg-config --cflags --libs waferloader) ${WT_LINK_FLAGS:-}
./train local.conf wafers || fail "README's program failed"
if ./train local.conf nothing 2>err; then
    fail "README's program succeeded without a data set"
fi
grep -q nothing err || fail "README's program does not tell which data set is missing"
echo "readme.sh: passed"

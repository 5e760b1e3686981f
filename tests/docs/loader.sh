#!/usr/bin/env bash
# docs/loader.md under test: its commands and its Python run as they are written, on a small data set.
#   loader.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/wt-docs-loader-XXXXXX")
trap 'rm -rf -- "$work"' EXIT
fail() {
    echo "loader.sh: $*" >&2
    exit 1
}
export PATH=$build/bin:$PATH PYTHONPATH=$source/python WAFERTIER_LIBRARY=$build/lib/libwaferloader.so.0 PYTHONDONTWRITEBYTECODE=1
cd "$work"
printf 'tier "cold" { url = "file://%s/cold" }\n' "$work" >local.conf
wafertier gen -q -c local.conf -d wafers -n 3000

blocks() { # language: the page's blocks of it, each into a file
    awk -v language="$1" '$0 == "```" language {on = 1; n++; next} /^```$/ {on = 0} on {print > (language n)}' "$source/docs/loader.md"
}
blocks sh
grep -h '^wafertier ' sh* >commands
[ "$(wc -l <commands)" -ge 2 ] || fail "the page has too few commands"
while read -r command; do
    timeout 60 bash -c "$command" >out 2>&1 || { cat out; fail "'$command' failed"; }
    [ -s out ] || fail "'$command' printed nothing"
done <commands

case ${WT_SANITIZE:-} in
?*) echo "NOTE: the page's Python did not run: a sanitizer's library cannot be loaded into python3" ;;
*)
    blocks python
    ls python* >/dev/null || fail "the page has no Python"
    for block in python*; do
        timeout 100 /usr/bin/python3 "$block" >out 2>&1 || { cat "$block" out; fail "the page's Python failed"; }
    done
    ;;
esac
echo "loader.sh: passed"

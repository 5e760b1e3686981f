#!/bin/bash
# docs/top.txt is what docs/make-top draws now, on the real servers. Exit status 77 where these are not installed. Usage: top_screen.sh BUILD_FOLDER SOURCE_FOLDER
set -u
BUILD=$1 SOURCE=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-top-screen-XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$DIR"/err "$DIR"/screen >&2 2>/dev/null
    exit 1
}
cd "$DIR" || exit 1
command -v redis-server >/dev/null && command -v ceph-osd >/dev/null && command -v ceph-fuse >/dev/null && [ -e /dev/fuse ] || {
    echo "SKIPPED: Ceph, ceph-fuse or Redis is not installed (scripts/setup test)" >&2
    exit 77
}
timeout 150 "$SOURCE/docs/make-top" "$BUILD" >screen 2>err || fail "docs/make-top"

# The same parts in the same order; figures differ.
shape() {
    awk '/^(wafertierd|jobs|out|TIER|cold|warm|hot|MOVES|JOB|q) / { print $1 } /^(vm|[^ ]*-[0-9]*) +line/ { print "job" }' "$1"
}
diff <(shape "$SOURCE/docs/top.txt") <(shape screen) || fail "docs/top.txt is not what top draws: run docs/make-top"
[ "$(shape screen | grep -c '^job$')" -eq 2 ] || fail "the screen has not two jobs"
echo "top's screen: all passed"

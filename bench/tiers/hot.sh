#!/usr/bin/env bash
# Runs bench_hot against a Redis of its own: hot.sh PATH-OF-bench_hot
set -euo pipefail
servers=$(dirname "$0")/../../tests/servers
dir=$(mktemp -d)
trap '"$servers/redis" wipe "$dir"' EXIT
"$servers/redis" start "$dir" single
"${1:?the path of bench_hot}" "$dir/socket" "$(cat "$dir/port0")"

#!/bin/bash
# Bytes that leave cold, to the optimum's: 1, 2, 4, 8 jobs, four cache sizes, even and uneven shards, free bandwidth and twice the need.
#   bench/policy/table.sh WAFERTIER [SHARDS [EPOCHS]]        1000 shards, 12 epochs; with 100000, 4 epochs take some minutes
# Goals: 1.02 with free bandwidth, 1.10 with twice the need, churn 0 with one job.
set -eu
W=$1 N=${2:-1000} E=${3:-12}
echo "$N shards, $E epochs; wafertier's cold bytes / the optimum's (LRU's, a fixed set's)"
printf '%-10s %-5s %4s %28s %28s %28s %28s\n' sizes rate jobs c=.05 c=.1 c=.25 c=.5
for sizes in even lognormal; do
    for rate in free 2x; do
        for jobs in 1 2 4 8; do
            printf '%-10s %-5s %4s' "$sizes" "$rate" "$jobs"
            for c in 0.05 0.1 0.25 0.5; do
                "$W" sim -j "$jobs" -n "$N" -e "$E" -c "$c" --sizes "$sizes" -b "$rate" | awk '
                    $1 == "wafertier" { w = $NF } $1 == "lru" { l = $NF } $1 == "fixed" { f = $NF }
                    END { printf " %28s", sprintf("%.4f (%.3f, %.3f)", w, l, f) }'
            done
            echo
        done
    done
done

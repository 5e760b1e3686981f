#!/bin/bash
# Hit ratios where nothing is known before, beside the best online policy of an independent simulator (LRU, FIFO, LFU, ARC, S3-FIFO, SIEVE, W-TinyLFU,
# LeCaR of libCacheSim; docs/performance.md has the source). About 5 minutes. Goal: 0.98 of it.
#   bench/policy/unknown.sh WAFERTIER
set -eu
W=${1:?the path of wafertier}
dir=$(mktemp -d "${TMPDIR:-/tmp}/unknown.XXXXXX")
trap 'rm -rf "$dir"' EXIT
echo "hits; in brackets with the copies that the mover reads from cold charged as misses, which the other policies' fills are not"
printf '%-14s %5s  %17s  %8s  %7s  %8s\n' trace c wafertier best ratio optimum
row() { # LABEL BEST-AT-FOUR-SIZES TRACE...
    label=$1 best=$2
    shift 2
    "$(dirname "$0")/trace.py" "$@" >"$dir/t"
    for c in 0.05 0.1 0.25 0.5; do
        b=${best%% *}
        best=${best#* }
        "$W" sim -t "$dir/t" --format oracle -c $c | awk -v b="$b" -v label="$label" -v c=$c '
            $1 == "wafertier" { h = $2; w = $3 } $1 == "optimum" { o = $2 }
            END { printf "%-14s %5s  %7.4f (%7.4f)  %8.4f  %7.3f  %8.4f%s\n", label, c, h, w, b, h / b, o, (h < 0.98 * b ? "  MISSED" : "") }'
    done
}
row "Zipf 0.6" "0.2680 0.3510 0.5248 0.7220" zipf 0.6
row "Zipf 0.8" "0.4750 0.5627 0.7069 0.8313" zipf 0.8
row "Zipf 1.0" "0.7356 0.7869 0.8630 0.9216" zipf 1.0
row "Zipf 1.2" "0.8944 0.9221 0.9483 0.9663" zipf 1.2
row "Zipf 0.9, scans" "0.5165 0.5851 0.6940 0.8118" scan
row "loop" "0.0401 0.0837 0.2076 0.4763" loop
row "3 jobs, scan" "0.1392 0.2786 0.6969 0.9298" pollution

#!/usr/bin/env bash
# All figures of the loader on data sets of its own on tmpfs: run.sh FOLDER-OF-PROGRAMS [all|quick] [FOLDER-ON-TMPFS]
# quick: smaller data sets, 3 pairs; shows that everything runs, and no figure. All: about 12 minutes on 2 cores that do nothing else.
set -euo pipefail
bin=$(realpath "${1:?the folder of bench_loader and wafertier}")
size=${2:-all}
base=${3:-/dev/shm}
dir=$(mktemp -d "$base/loader.XXXXXX")
trap 'rm -rf "$dir"' EXIT

case $size in
    all) maps=256MiB sem=1GiB big=2GiB pairs=10 ;;
    quick) maps=16MiB sem=128MiB big=512MiB pairs=3 ;; # some steps an epoch
    *) echo "run.sh: '$size' is neither all nor quick" >&2; exit 2 ;;
esac

gen() { # NAME KIND SHAPE DTYPE SIZE CODEC
    "$bin/wafertier" gen --quiet --to "$dir" --dataset "$1" --kind "$2" --shape "$3" --dtype "$4" --size "$5" --codec "$6"
}
bench() { timeout 600 "$bin/bench_loader" "$dir" "$@" -p "$pairs"; }
forget() { rm -rf "${dir:?}/$1"; }

echo "$(uname -sr), $(nproc) processors:$(sed -n 's/^model name[^:]*://p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1 /proc/loadavg)"
"$bin/bench_plan"
while read -r kind shape dtype bytes batch; do
    gen tar $kind $shape $dtype "$bytes" tar
    for threads in 1 2; do
        bench tar gather -t $threads -b $batch
        bench tar gather -t $threads -b $batch -v
    done
    bench tar gap -t 2 -b $batch
    bench tar paced -t 2 -b $batch
    forget tar
    gen zst $kind $shape $dtype "$bytes" zstd
    for threads in 1 2; do
        bench zst decode -t $threads -b $batch
    done
    bench zst cached -t 1 -b $batch
    bench zst gap -t 2 -b $batch
    bench zst paced -t 2 -b $batch
    forget zst
done <<END
map 52x52 u8 $maps 1024
sem 512x512 u8 $sem 64
sem 2048x2048 u16 $big 16
END

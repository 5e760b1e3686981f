# shellcheck shell=bash disable=SC2154 # variables of scripts/demo
# Sourced by scripts/demo: storage with no server. Cold and warm are folders, hot is under /dev/shm.
# What a kind of storage gives: storage_start, storage_stop, storage_config CAPACITY-OF-HOT, storage_refresh (before a run: warm and hot
# empty, nothing of cold in a cache), storage_note (a line about cold). $root is the demo's folder, $config its configuration.

shm=
storage_start() {
    shm=$(mktemp -d /dev/shm/wafertier-demo.XXXXXX)
    mkdir -p "$root/cold" "$root/warm" "$shm/hot"
}

storage_stop() { [ -z "$shm" ] || rm -rf -- "$shm"; }

storage_config() { # hot capacity
    sed -e "s#/var/lib/wafertier#$root#; s#/dev/shm/wafertier#$shm/hot#; s#/run/wafertier#$root#" \
        -e "/^tier \"hot\"/,/^}/s/capacity = .*/capacity = \"$1\"/" \
        -e "/^tier \"cold\"/a\    filter = \"$cold\"" config/local.conf >"$config"
}

storage_refresh() {
    rm -rf -- "$shm/hot"
    mkdir -p "$shm/hot"
    find "$root/warm" -mindepth 1 -delete
    # What the first epoch reads shall come from the disk, not from the page cache.
    find "$root/cold" -type f -exec dd oflag=nocache conv=notrunc,fdatasync count=0 status=none of={} \;
}

storage_note() { echo "cold is ${cold:-the disk as it is}"; }

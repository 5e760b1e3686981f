#!/bin/bash
# Installs the tree of a build folder under a temporary prefix, builds examples/minimal.c against what was installed, by pkg-config and by
# CMake, and runs both on a small data set. Nothing of the build folder but the installed files may be needed.
#   install.sh BUILD_FOLDER SOURCE_FOLDER MAKE_DATASET
set -euo pipefail
build=$1 source=$2 make_dataset=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/wt-install-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() {
    echo "install.sh: $*" >&2
    exit 1
}

cmake --install "$build" --prefix "$work/usr" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake --install failed"; }
lib=$(dirname "$(find "$work/usr" -name 'libwaferloader.so.0' -print -quit)")
[ -e "$lib/libwaferloader.so" ] || fail "no libwaferloader.so was installed"

# Only wl_ leaves the library.
others=$(nm -D --defined-only "$lib/libwaferloader.so" | awk '$2 != "A" {print $3}' | grep -v '^wl_' || true)
[ -z "$others" ] || fail "symbols that are not the API: $others"
headers=$(cd "$work/usr/include" && find . -type f | sort | tr '\n' ' ')
[ "$headers" = "./wafertier/loader.h ./wafertier/version.h " ] || fail "installed headers: $headers"

"$make_dataset" "$work"

# pkg-config; the file must not point into the build folder.
export PKG_CONFIG_PATH=$lib/pkgconfig
grep -q "$build" "$lib/pkgconfig/waferloader.pc" && fail "waferloader.pc names the build folder"
flags=$(pkg-config --cflags --libs waferloader)
# shellcheck disable=SC2086
cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$source/examples/minimal.c" -o "$work/by-pkg-config" $flags ${WT_LINK_FLAGS:-}
cc -Wall -Wextra -Werror -fsyntax-only -x c++ -std=c++17 - <<<'#include <wafertier/loader.h>' -I"$work/usr/include" ||
    fail "the header is no C++"

# CMake
mkdir "$work/project"
cp "$source/examples/minimal.c" "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(waferloader 0.1 REQUIRED)
add_executable(by-cmake minimal.c)
target_link_libraries(by-cmake PRIVATE waferloader::waferloader)
END
cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$work/usr" -DCMAKE_EXE_LINKER_FLAGS="${WT_LINK_FLAGS:-}" \
    >"$work/log" 2>&1 && cmake --build "$work/project/build" >>"$work/log" 2>&1 || { cat "$work/log"; fail "the CMake project failed"; }

# Both count the same classes as the data set has; a wrong name is an error with its message.
for program in "$work/by-pkg-config" "$work/project/build/by-cmake"; do
    LD_LIBRARY_PATH=$lib "$program" "$work/loader.conf" wafers >"$work/out" || fail "$program failed"
    diff "$work/expected" "$work/out" || fail "$program counted otherwise"
    if LD_LIBRARY_PATH=$lib "$program" "$work/loader.conf" nothing 2>"$work/err"; then
        fail "$program succeeded without a data set"
    fi
    grep -q "nothing" "$work/err" || fail "$program does not say which data set is missing"
done
echo "install.sh: passed"

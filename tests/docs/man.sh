#!/bin/bash
# The man page of wafertier says what --help says, and is clean roff. Usage: man.sh WAFERTIER SOURCE_FOLDER
set -u
page=$2/docs/man/wafertier.1
diff <("$2/docs/man/make-wafertier.1" "$1") "$page" ||
    { echo "FAILED: $page is not what --help says: run docs/man/make-wafertier.1 wafertier >$page" >&2; exit 1; }
for verb in $("$1" help | awk '/^Verbs:/ { on = 1; next } /^$/ { on = 0 } on && $1 != "help" { print $1 }'); do
    for option in $("$1" "$verb" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE '\-\-[a-z-]+'); do
        [ "$option" = --help ] || grep -qF -e "${option//-/\\-}" "$page" ||
            { echo "FAILED: $page has no $option of $verb" >&2; exit 1; }
    done
done
if command -v man >/dev/null; then
    complaints=$(LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [ -z "$complaints" ] || { echo "FAILED: $complaints" >&2; exit 1; }
fi

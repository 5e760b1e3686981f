#!/bin/bash
# The completions know every verb, option and choice that --help names, and no other; bash's is asked as bash would ask it, zsh's is loaded
# by zsh's own machinery. Usage: completion.sh WAFERTIER BUILD_FOLDER
set -u
W=$1 BUILD=$2
DIR=$(mktemp -d "${TMPDIR:-/tmp}/wt-completion-XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
"$W" completion bash >"$DIR/bash" && "$W" completion zsh >"$DIR/_wafertier" || fail "completion"
"$W" completion fish >/dev/null 2>"$DIR/err" && fail "a shell that it does not know"
grep -q 'bash or zsh' "$DIR/err" || fail "the message about the shell"
"$W" completion bash --output "$DIR/none/file" 2>"$DIR/err" && fail "a folder that is not there"
grep -q 'none/file' "$DIR/err" || fail "the message about the file"

# shellcheck source=/dev/null
source "$DIR/bash"
ask() { # WORD...: the last is being typed
    COMP_WORDS=(wafertier "$@")
    COMP_CWORD=$#
    _wafertier
}
verbs=$("$W" help | awk '/^Verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
ask ''
[ "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" = "$(sort <<<"$verbs")" ] || fail "verbs: ${COMPREPLY[*]}"
ask pa
[ "${COMPREPLY[*]}" = pack ] || fail "pa: ${COMPREPLY[*]}"
ask help st
[ "${COMPREPLY[*]}" = stats ] || fail "help st: ${COMPREPLY[*]}"
for verb in $verbs; do
    [ "$verb" != help ] || continue
    ask "$verb" --
    options=$("$W" "$verb" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p')
    [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" = "$(sort <<<"$options")" ] || fail "options of $verb: ${COMPREPLY[*]}"
done
ask pack --codec z
[ "${COMPREPLY[*]}" = zstd ] || fail "choices: ${COMPREPLY[*]}"
ask gen --kind ''
[ "${COMPREPLY[*]}" = "map sem" ] || fail "choices: ${COMPREPLY[*]}"
ask warm --tier --
[ -z "${COMPREPLY[*]}" ] || fail "a name is wanted, not an option: ${COMPREPLY[*]}"
for verb in $verbs; do # zsh's has the same
    [ "$verb" = help ] && continue
    part=$(sed -n "/^    $verb)/,/;;/p" "$DIR/_wafertier")
    for option in $("$W" "$verb" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p'); do
        grep -qF -e "$option" <<<"$part" || fail "zsh: no $option of $verb"
    done
done

# Where the shells look.
DESTDIR=$DIR/root cmake --install "$BUILD" >/dev/null || fail "cmake --install"
cmp -s "$DIR/bash" "$(find "$DIR/root" -path '*/bash-completion/completions/wafertier')" || fail "bash's is not installed"
cmp -s "$DIR/_wafertier" "$(find "$DIR/root" -path '*/zsh/site-functions/_wafertier')" || fail "zsh's is not installed"

if command -v zsh >/dev/null; then
    zsh -n "$DIR/_wafertier" || fail "zsh does not understand it"
    # A zsh of its own on a pseudo-terminal completes a line, once its editor says that it reads one.
    HOME=$DIR timeout 60 zsh -f -c '
        zmodload zsh/zpty
        zpty z "HOME=$1 PS1=: zsh -f -i"
        zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=0; zle-line-init() { print -n edit\"\"ing }; zle -N zle-line-init"
        zpty -r z out "*editing*"
        zpty -w -n z "wafertier pack --codec zs"$'"'\t'"'
        zpty -r z out "*codec*zstd*" && print "zsh completed"
        zpty -d z' zsh "$DIR" >"$DIR/out" 2>&1
    grep -q 'zsh completed' "$DIR/out" || { cat "$DIR/out"; fail "zsh does not complete"; }
else
    echo "completion: zsh is not installed, its completion was not loaded"
fi
echo "completion: all passed"

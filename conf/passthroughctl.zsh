#compdef passthroughctl
# SPDX-License-Identifier: GPL-2.0-or-later
# Completion for passthroughctl in zsh. Bash computes the words by its own completion, which has the list of verbs and options.

# Both completions are installed below the same share/ directory.
local script=${functions_source[_passthroughctl]:h}/../../bash-completion/completions/passthroughctl
local -a offered

case $words[CURRENT-1] in
--node | --config | --template | --svg) _files && return ;;
-H | --host) _hosts && return ;;
esac
offered=(${(f)"$(bash -c '
    . "$1" || exit
    shift
    compopt() { :; }
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _passthroughctl
    printf "%s\n" "${COMPREPLY[@]}"
' bash "$script" "${(@Q)words[1,CURRENT]}" 2>/dev/null)"})
# A count or an address follows "=".
compadd -S '' -- ${(M)offered:#*=}
compadd -- ${offered:#*=}

# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Completion for passthroughctl. Verbs and options are what its --help says, names what the node has, so nothing here gets old.

_passthroughctl_verbs() {
    passthroughctl --help 2>/dev/null | sed -n '/^Verbs:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

# Of a verb, or without one the global ones; "--help" and "-h" alike.
_passthroughctl_options() {
    passthroughctl ${1:+"$1"} --help 2>/dev/null | sed -n '/^Options:$/,/^$/p' | grep -oE -- '(^| )--?[a-z][a-z-]*' | tr -d ' '
}

# The first column of a table, without its heading.
_passthroughctl_column() {
    passthroughctl "${@:2}" 2>/dev/null | awk -v c="$1" 'NR > 1 && $c != "-" { print $c }' | sort -u
}

# Of an allocation.
_passthroughctl_slots() {
    passthroughctl xml "$1" 2>/dev/null | sed -n 's/.*<alias name="ua-\(.*\)".*/\1/p'
}

# What is offered is on standard input; readline quotes what is a name of a file, and adds the slash of a directory.
_passthroughctl_files() {
    mapfile -t COMPREPLY
    compopt -o filenames 2>/dev/null
    return 0
}

_passthroughctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' i words=''
    # Readline breaks words at "=" and ":"; a pool's count and an address come in pieces.
    if declare -F _get_comp_words_by_ref >/dev/null; then
        local words_ref cword
        _get_comp_words_by_ref -n =: -c cur -p prev -w words_ref -i cword
        COMP_WORDS=("${words_ref[@]}") COMP_CWORD=$cword
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -H | --host | -c | --connect | --cpus | --memory | --page-size | --cells | --at | --host-nodes | --cpus-from | --memory-from | --numa | --proximity | --topology | --confidential | --fabric | --shared-memory | --owner | --hold | --tag | --consumer | --token | --pool | --generation | --template | --device | --format | --node | --config | --lines | --svg) ((i++)) ;;
        -*) ;;
        *) verb=${COMP_WORDS[i]} && break ;;
        esac
    done

    case $prev in
    --numa) words='single required preferred socket legacy' ;;
    --proximity) words='switch root-complex node any' ;;
    --topology) words='mirror flat' ;;
    --fabric) words=off ;;
    --confidential) words='snp tdx' ;;
    --format) words='xml xl' ;;
    --device) words=$(_passthroughctl_slots "${COMP_WORDS[i + 1]}") ;;
    --at) words=$(_passthroughctl_column 2 list | sed 's/$/=/') ;;
    --pool) words=$(_passthroughctl_column 2 list) ;;
    --template | --config | --svg) _passthroughctl_files < <(compgen -f -- "$cur") && return ;;
    --node) _passthroughctl_files < <({ compgen -f -X '!*.tree' -- "$cur"; compgen -d -- "$cur"; } | sort -u) && return ;;
    -H | --host) mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur") && return ;;
    -c | --connect | --cpus | --memory | --page-size | --cells | --host-nodes | --cpus-from | --memory-from | --shared-memory | --owner | --hold | --tag | --consumer | --token | --generation | --lines) return ;;
    *)
        case $verb,$cur in
        *,-*) words=$(_passthroughctl_options "$verb") ;;
        ,*) words=$(_passthroughctl_verbs) ;;
        show,*) words="$(_passthroughctl_column 1 list --all) $(_passthroughctl_column 1 allocations)" ;;
        list,*) words=$(_passthroughctl_column 2 list) ;;
        explain,* | history,*) words=$(_passthroughctl_column 1 list --all) ;;
        sriov,*) words=$(_passthroughctl_column 1 sriov) ;;
        quarantine,*) words=$(_passthroughctl_column 1 quarantine) ;;
        release,* | accept,* | prepare,* | renew,* | xml,* | define,* | cdi,*) words=$(_passthroughctl_column 1 allocations) ;;
        attach,*) words="$(_passthroughctl_column 1 allocations) $(_passthroughctl_column 2 list | sed 's/$/=/')" ;;
        detach,*) words="$(_passthroughctl_column 1 allocations) $(_passthroughctl_slots "${COMP_WORDS[i + 1]}")" ;;
        plan,* | allocate,*) words=$(_passthroughctl_column 2 list | sed 's/$/=/') ;;
        esac
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null
    ! declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions "$cur"
}

complete -F _passthroughctl passthroughctl

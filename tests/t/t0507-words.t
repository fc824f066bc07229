#!/bin/bash
# The command lines of all programs: whatever is wrong is one line and status 64; the completion offers what the programs say.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$T" || exit 99
unset RECON_RUN RECON_PIN
PROGRAMS='recon-submit recon-launch recon-run recon-pin recon-check recon-report'
wrong() { # TEXT COMMAND...
    tap 64 "$(shift; echo "$*")" "${@:2}"
    one_line err 'one line'
    has err "$1" "it says: $1"
}
for p in $PROGRAMS; do
    wrong "unknown option '--nothing-like-it'" $p --nothing-like-it
    wrong "unknown option '-@'" $p -@
    wrong 'takes no value' $p --help=x
done
wrong "--format 'xml'" recon-check --format xml
wrong "'xml'" recon-pin --format xml show x
wrong "'xml'" recon-report --format xml x
wrong "'xml'" recon-run --format xml --list
wrong "'xml'" recon-launch --format xml --check-only
wrong 'wants a value: --format=text|json' recon-run --format
wrong 'wants a value: -p PIN' recon-check -p
wrong 'more than one' recon-run --de
wrong "write '--set pin=...'" recon-submit --pin x
wrong "write '--set device=...'" recon-submit --device cuda
wrong "write '--set max_running=...'" recon-submit --max-running=3
tap 0 'a value that looks like an option is a value' recon-run --list --out --format

. "$abs_top_srcdir/completion/recon"
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _recon "$1" 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}" >out; }
for p in $PROGRAMS; do
    $p --help | grep -oE -e '--[a-z-]+\[?=[a-z]+(\|[a-z]+(\[:N\])?)+' | sed 's/\[:N\]//' >choices
    while IFS='=' read -r option choices; do
        complete_line $p "$option" = ''
        [ "$(paste -sd'|' out)" = "$choices" ] && ok "$p $option offers $choices" || not_ok "$p $option" "$choices" "$(cat out)"
        complete_line $p "$option" ''
        [ "$(paste -sd'|' out)" = "$choices" ] && ok 'without = too' || not_ok "$p $option" "$choices" "$(cat out)"
        for c in ${choices//|/ }; do
            $p "$option" "$c" >o 2>err </dev/null
            lacks err "'$c'" "$p takes $option $c"
        done
    done <choices
done
mkdir folder; touch file
for option in --set; do
    for p in recon-run recon-submit; do
        complete_line $p $option f
        [ -z "$(cat out)" ] && ok "$p $option offers no files" || not_ok "$p $option" "$(cat out)"
    done
done
complete_line recon-check --skip lib-n
has out lib-not-found '--skip offers rules'
complete_line recon-launch --skip lib-n
has out lib-not-found 'in recon-launch too'
complete_line recon-run --out f
[ "$(cat out)" = folder ] && ok '--out offers folders' || not_ok '--out' "$(cat out)"
complete_line recon-check --facts f
has out file '--facts offers files'
complete_line recon-run --list --for
has out --format 'after an option without value come options'
complete_line recon-pin ''
recon-pin --help | sed -n 's/.*\[OPTION...\] \([a-z]*\).*/\1/p' | sort >said
sort out | diff - said >diffs && ok 'verbs are those of the help' || not_ok verbs "$(cat diffs)"
while read -r verb; do
    recon-pin "$verb" >o 2>err
    lacks err 'unknown command' "recon-pin knows $verb"
done <said
finish

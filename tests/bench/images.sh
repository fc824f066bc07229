#!/bin/bash
# recon-check --images against cuobjdump --list-elf: time of whole processes, warm, and the number of SASS images, which must be
# the same but for sm_120f, which cuobjdump calls sm_120. Usage: images.sh RECON-CHECK [LIBRARY...]; CUOBJDUMP: another cuobjdump.
set -u
check=${1:?recon-check} cuobjdump=${CUOBJDUMP:-cuobjdump}; shift
[ $# -gt 0 ] || set -- /usr/local/cuda/lib64/libcublasLt.so.1[0-9]
export LC_ALL=C
command -v "$cuobjdump" >/dev/null || { echo "no '$cuobjdump'" >&2; exit 1; }
# median MS of N runs
median() {
    local n=$1 a b; shift
    for ((i = 0; i < n; i++)); do
        a=${EPOCHREALTIME/./}
        "$@" >/dev/null 2>&1
        b=${EPOCHREALTIME/./}
        echo $((b - a))
    done | sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 1000 }'
}
archs() { sort | uniq -c | awk '{ printf "%s%s x %s", (NR > 1 ? ", " : ""), $1, $2 }'; }
status=0
for f; do
    [ -r "$f" ] || { echo "no '$f'" >&2; exit 1; }
    # containers as they are stored, link stubs too; relocatable ones are not in --list-elf without --all-fatbin
    "$check" -v --format jsonl --images "$f" | grep -v '"what":"relocatable"' | grep -o '"sass":\[[^]]*\]' | grep -o 'sm_[0-9]*[af]*' |
        sed 's/^sm_\(12[0-9]\)f$/sm_\1/' | archs >/tmp/images.$$.a
    "$cuobjdump" --list-elf "$f" | grep -o 'sm_[0-9]*[af]*\.cubin' | sed -e 's/\.cubin$//' -e 's/^sm_\(12[0-9]\)f$/sm_\1/' | archs >/tmp/images.$$.b
    "$check" --images "$f" >/dev/null
    ours=$(median 15 "$check" --images "$f") theirs=$(median 3 "$cuobjdump" --list-elf "$f")
    printf '%s: recon-check %s ms, cuobjdump %s ms, %s times as fast\n' "$(basename "$f")" "$ours" "$theirs" \
        "$(awk "BEGIN { printf \"%.0f\", $theirs / $ours }")"
    if cmp -s /tmp/images.$$.a /tmp/images.$$.b; then printf '  the same counts: %s\n' "$(cat /tmp/images.$$.a)"
    else printf '  counts differ\n  recon-check: %s\n  cuobjdump:   %s\n' "$(cat /tmp/images.$$.a)" "$(cat /tmp/images.$$.b)"; status=1; fi
    rm -f /tmp/images.$$.a /tmp/images.$$.b
done
exit $status

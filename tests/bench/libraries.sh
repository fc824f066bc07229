#!/bin/bash
# recon-check against libtree, ldd, ldd -r and ld.so, whole processes, warm, in turns in one run: the closure and the versions of
# a program of many objects, the same with all symbols, path look-ups, the images of a large library.
# Usage: libraries.sh BUILD [ROUNDS [PROGRAM [LIBRARY]]]. The node's facts are taken once: the peers ask nothing of the node.
set -u
build=${1:?the build folder} rounds=${2:-7} prog=$(command -v "${3:-mpv}") lib=${4:-/usr/local/cuda/lib64/libcublasLt.so.13} each=5
[ -n "$prog" ] || { echo "no program '${3:-mpv}'" >&2; exit 1; }
export PATH=$build/bin:$PATH LC_ALL=C
unset LD_LIBRARY_PATH LD_PRELOAD
T=$(mktemp -d "${TMPDIR:-/tmp}/recon-bench.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
recon-check --save-facts "$T/facts" 2>/dev/null || exit 1

closure=(recon-check --facts "$T/facts" --skip symbol-missing --libs "$prog")
symbols=(recon-check --facts "$T/facts" --libs "$prog")
images=(recon-check --images "$lib")
# once NAME COMMAND...: mean wall and processor time of `each` runs, ms, into $T/NAME
once() {
    local TIMEFORMAT='%R %U %S' name=$1; shift
    { time for ((i = 0; i < each; i++)); do "$@" >/dev/null 2>&1; done; } 2>&1 |
        awk -v n="$each" '{ printf "%.3f %.3f\n", $1 * 1000 / n, ($2 + $3) * 1000 / n }' >>"$T/$name"
}
for ((r = 0; r <= rounds; r++)); do
    once closure "${closure[@]}"
    command -v libtree >/dev/null && once libtree libtree "$prog"
    once ldd ldd "$prog"
    once trace env LD_TRACE_LOADED_OBJECTS=1 "$prog"
    once symbols "${symbols[@]}"
    once ldd-r ldd -r "$prog"
    [ -e "$lib" ] && once images "${images[@]}"
    [ $r = 0 ] && rm -f "$T"/{closure,libtree,ldd,trace,symbols,ldd-r,images} # the first round warms
done
# the median of a column; of the ratios of two, round by round
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
row() { [ -s "$T/$2" ] && printf '%-52s %8s ms %8s ms\n' "$1" "$(cut -d' ' -f1 "$T/$2" | median)" "$(cut -d' ' -f2 "$T/$2" | median)"; }
ratio() {
    [ -s "$T/$2" ] && [ -s "$T/$3" ] && printf '%-52s %8s    %8s\n' "$1" "$(paste -d' ' "$T/$2" "$T/$3" | awk '{ print $1 / $3 }' | median)" \
        "$(paste -d' ' "$T/$2" "$T/$3" | awk '{ print $2 / $4 }' | median)"
}
printf '%-52s %11s %11s\n' "$(basename "$prog"), $("${closure[@]}" 2>/dev/null | wc -l) objects" wall processor
row 'recon-check: closure and versions' closure
row 'libtree' libtree
row 'ldd' ldd
row 'ld.so, its trace alone' trace
row 'recon-check: with all symbols' symbols
row 'ldd -r' ldd-r
row "recon-check --images $(basename "$lib")" images
ratio 'closure and versions / libtree' closure libtree
ratio 'closure and versions / ldd' closure ldd
ratio 'with all symbols / ldd -r' symbols ldd-r
if command -v strace >/dev/null; then
    # what asks for a path: names that are not empty, outside /proc and /sys; those that fail
    lookups() {
        strace -f -e trace=%file -o "$T/strace" "$@" >/dev/null 2>&1
        awk '/execve\(/ || /getcwd/ || /resumed/ || /"\/(proc|sys|dev)/ { next } /[( ]"[^"]/ { n++; bad += / = -1 / } END { print n + 0 ", failed " bad + 0 }' "$T/strace"
    }
    printf '%-52s %s\n' 'path look-ups: recon-check, closure and versions' "$(lookups "${closure[@]}")"
    printf '%-52s %s\n' 'path look-ups: recon-check, with all symbols' "$(lookups "${symbols[@]}")"
    printf '%-52s %s\n' 'path look-ups: ld.so' "$(lookups -E LD_TRACE_LOADED_OBJECTS=1 "$prog")"
    command -v libtree >/dev/null && printf '%-52s %s\n' 'path look-ups: libtree' "$(lookups libtree "$prog")"
fi
exit 0

#!/bin/bash
# What the launcher costs on a node where nothing changed since the pin: a program of 200 small libraries of its own, made
# on the spot, or one that is there. Usage: launcher.sh BUILD [REPEATS [LAUNCHERS-AT-ONCE [PROGRAM ARG...]]]; strace counts the look-ups where it is installed.
set -u
build=${1:?the build folder} repeats=${2:-21} at_once=${3:-500} libs=200
export PATH=$build/bin:$PATH LC_ALL=C
T=$(mktemp -d "${TMPDIR:-/tmp}/recon-bench.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
cd "$T" || exit 1

made_program() {
    mkdir lib
    for ((i = 0; i < libs; i++)); do
        echo "int f$i(void) { return $i; }" | ${CC:-gcc} -shared -fPIC -Wl,-soname,libf$i.so -o lib/libf$i.so -xc - || exit 1
    done
    {
        for ((i = 0; i < libs; i++)); do echo "int f$i(void);"; done
        echo 'int main(void) { return 0'
        for ((i = 0; i < libs; i++)); do echo "+ f$i() - $i"; done
        echo '; }'
    } | ${CC:-gcc} -o prog -xc - -xnone lib/*.so "-Wl,-rpath,\$ORIGIN/lib" || exit 1
}
if [ $# -gt 3 ]; then
    prog=("$(command -v "$4")" "${@:5}")
else
    made_program
    prog=("$T/prog")
fi
export RECON_CACHE=$T/kept # what a boot does not change is kept here, not on this host
recon-pin capture -o env.pin "${prog[0]}" || exit 1
objects=$(grep -c '{ role = ' env.pin) dirs=$(sed -n '/^dirs = /,/^)/p' env.pin | grep -c mtime_ns)

# median MS of `repeats` runs
median() {
    local i a b
    for ((i = 0; i < repeats; i++)); do
        a=${EPOCHREALTIME/./}
        "$@" >/dev/null 2>&1 || { echo "failed: $*" >&2; exit 1; }
        b=${EPOCHREALTIME/./}
        echo $((b - a))
    done | sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 1000 }'
}
# mean processor time of `repeats` runs, all processes of theirs, MS: what else the machine does changes it little
processor() {
    local TIMEFORMAT='%U %S'
    { time for ((i = 0; i < repeats; i++)); do "$@" >/dev/null 2>&1; done; } 2>&1 |
        awk -v n="$repeats" '{ printf "%.1f", ($1 + $2) * 1000 / n }'
}
row() { printf '%-44s %s\n' "$1" "$2"; }

whole=$(median recon-launch --pin env.pin -- "${prog[@]}")
alone=$(median "${prog[@]}")
first=$(median "$build/libexec/recon/recon-probe") probe=$(median "$build/libexec/recon/recon-probe" --cache="$T/kept")
ldd=$(median ldd -r "${prog[0]}")
row 'objects, directories' "$objects, $dirs"
row 'launcher and program' "$whole ms"
row 'program alone' "$alone ms"
row 'from start to the running program' "$(awk "BEGIN { printf \"%.1f\", $whole - $alone }") ms"
row 'probe of the node, alone, the first of a boot' "$first ms"
row 'probe of the node, alone, later' "$probe ms"
row 'from start to the running program / ldd -r' "$(awk "BEGIN { printf \"%.2f\", ($whole - $alone) / $ldd }")"
row 'ldd -r of the same program' "$ldd ms"
cpu_whole=$(processor recon-launch --pin env.pin -- "${prog[@]}") cpu_alone=$(processor "${prog[@]}")
cpu_probe=$(processor "$build/libexec/recon/recon-probe" --cache="$T/kept") cpu_ldd=$(processor ldd -r "${prog[0]}")
own=$(awk "BEGIN { printf \"%.1f\", $cpu_whole - $cpu_alone - $cpu_probe }")
row 'processor time: probe' "$cpu_probe ms"
row 'processor time: the launcher itself' "$own ms"
row 'processor time: ldd -r' "$cpu_ldd ms"
row 'launcher itself / ldd -r' "$(awk "BEGIN { printf \"%.2f\", $own / $cpu_ldd }")"
row 'launcher with its probe / ldd -r' "$(awk "BEGIN { printf \"%.2f\", ($own + $cpu_probe) / $cpu_ldd }")"

if command -v strace >/dev/null; then
    # the children of the launcher that become another program (probe, prog) are told from it by their execve
    strace -f -e trace=%file,execve,clone,fork,vfork -o trace recon-launch --pin env.pin -- "${prog[@]}" >/dev/null
    awk -v objects="$objects" -v dirs="$dirs" '
        NR == 1 { own[$1] = 1; next }
        /resumed>/ { next }
        $0 ~ /execve\(/ { delete own[$1]; gone[$1] = 1; next }
        !($1 in own) && !($1 in gone) && !($1 in other) { if ($0 ~ /"\/dev\/null"/) { other[$1] = 1; next } own[$1] = 1 }
        ($1 in own) && /"[^"]/ && !/, "", / && !/"\/(proc|sys|dev)/ { n++; if (/openat\(.*\/lib[^\/"]*\.so[.0-9]*"/) opened++ }
        END {
            printf "%-44s %d, %d beyond one for each object and directory\n", "look-ups outside /proc, /sys, /dev", n, n - objects - dirs
            printf "%-44s %s\n", "the pin was reused", opened ? "no: " opened " libraries were opened" : "yes: no library was opened"
        }' trace
fi

: >err
a=${EPOCHREALTIME/./} failed=0 pids=()
for ((i = 0; i < at_once; i++)); do recon-launch --pin env.pin -- "${prog[@]}" >/dev/null 2>>err & pids+=($!); done
for p in "${pids[@]}"; do wait "$p" || failed=$((failed + 1)); done
b=${EPOCHREALTIME/./}
row "$at_once launchers at once" "$failed failed, $(awk "BEGIN { printf \"%.1f\", ($b - $a) / 1e6 }") s, $(wc -l <err) lines of words"
[ "$failed" = 0 ]

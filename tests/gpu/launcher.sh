#!/bin/bash
# The probe and the launcher on a node with a GPU, from an installed tree: what they cost with NVML in all, and that the
# facts of the device files hold. Usage: launcher.sh PREFIX [REPEATS]. Ends with 1 when a bound is missed (60 ms in all).
set -u
prefix=${1:?the folder that recon is installed in} repeats=${2:-15}
export PATH=$prefix/bin:$PATH LC_ALL=C
probe=$prefix/libexec/recon/recon-probe
T=$(mktemp -d "${TMPDIR:-/tmp}/recon-gpu.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
missed=0
row() { printf '%-52s %s\n' "$1" "$2"; }
# median MS of `repeats` runs
median() {
    local i a b
    for ((i = 0; i < repeats; i++)); do
        a=${EPOCHREALTIME/./}; "$@" >/dev/null 2>"$T/err" || { echo "failed: $*: $(head -1 "$T/err")" >&2; exit 1; }
        b=${EPOCHREALTIME/./}; echo $((b - a))
    done | sort -n | awk '{ v[NR] = $1 } END { printf "%.1f", v[int((NR + 1) / 2)] / 1000 }'
}
within() { # within NAME MS BOUND
    row "$1" "$2 ms (at most $3)"
    awk "BEGIN { exit !($2 <= $3) }" || { row "$1" 'MISSED'; missed=1; }
}
says() { if grep -q "$1" "$T/facts"; then row "$2" "$(grep -o "$1[^;]*" "$T/facts" | head -1)"; else row "$2" 'NOT KNOWN'; missed=1; fi; }

"$probe" >"$T/facts" || exit 1
says 'kernel_module = ' 'driver'
says 'source = "nvml"' 'asked of'
says 'compute_capability = ' 'GPU'
grep -o 'cpus = \[[^]]*\]' "$T/facts" | head -1 | sed 's/^/CPUs near the first GPU: /'
# device files: what the facts say of each against what opening it says
for d in /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia[0-9]; do
    if [ ! -e "$d" ]; then real=missing; elif : 2>/dev/null <>"$d"; then real=usable; else real='permission denied'; fi
    said=$(grep -o "path = \"$d\";\( problem = \"[^\"]*\"\)\{0,1\}" "$T/facts" | sed -n 's/.*problem = "\(.*\)"/\1/p')
    grep -q "path = \"$d\"" "$T/facts" || said=${real/usable/} # not listed: nothing said
    row "device $d" "${said:-usable}, in truth $real"
    [ "${said:-usable}" = "$real" ] || missed=1
done

recon-pin capture -o "$T/env.pin" "$prefix/bin/recon-run" "$prefix/lib/recon/cuda.so" 2>"$T/err" || { cat "$T/err"; exit 1; }
export RECON_CACHE=$T/kept
row 'probe, nothing kept' "$(RECON_CACHE=off median "$probe") ms"
within 'probe, the rest of the boot kept, with NVML' "$(median "$probe" --cache="$T/kept")" 60
whole=$(RECON_CACHE=off median recon-launch --check-only --pin "$T/env.pin")
row 'launcher, nothing kept: probe, judging, end' "$whole ms"
within 'launcher, kept: probe, judging, end' "$(median recon-launch --check-only --pin "$T/env.pin")" 60
recon-launch -v --check-only --pin "$T/env.pin" >"$T/out" 2>&1 || { row 'verdict on the CUDA module' "REFUSED: $(head -1 "$T/out")"; missed=1; }
grep -h '^\(error\|warn\|note\)' "$T/out" | head -5
if [ "$(id -u)" = 0 ]; then # a user who may not open the driver's files
    for d in /dev/nvidiactl /dev/nvidia-uvm; do
        [ -e "$d" ] || continue
        : >"$T/closed"; chmod 0 "$T/closed"
        unshare -m sh -c 'mount --bind "$1" "$2" && exec setpriv --reuid 65534 --clear-groups "$3"' \
            sh "$T/closed" "$d" "$probe" >"$T/facts" 2>/dev/null
        row "without $d" "$(grep -o "path = \"$d\"; problem = \"[^\"]*\"" "$T/facts" || echo 'nothing told (no mount namespace here?)')"
    done
fi
exit $missed

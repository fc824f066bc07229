#!/bin/sh
# The CUDA kernels against the CPU's, on a machine with a GPU.
#   tests/gpu/run.sh BUILD DATA OUT [PART...]
# BUILD: a built tree; DATA: a folder with rgbd-kitchen/ (100 real frames and tsdf_ref_4cm.npz), meshes/, meshes-broken/ and pointclouds/;
# OUT: a folder for what comes out; PART: scenes, scans, agree, sanitizers, times (all; the sanitizers take most of the time, some six minutes). Prints a table and
# ends with "N passed, N failed"; status 0 when none failed.
usage() { echo "usage: $0 BUILD DATA OUT [scenes] [scans] [agree] [sanitizers] [times]" >&2; exit 64; }
[ $# -ge 3 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || usage
data=$(cd "$2" && pwd) || usage
mkdir -p "$3" || exit 73
out=$(cd "$3" && pwd)
shift 3
parts=$*
for name; do case $name in scenes | scans | agree | sanitizers | times) ;; *) usage ;; esac; done
part() { [ -z "$parts" ] || case " $parts " in *" $1 "*) ;; *) false ;; esac; } # whether it is wanted
run=$build/bin/recon-run
compare=$build/tests/gpu/compare
[ -x "$compare" ] || make -C "$build" tests/gpu/compare >"$out/make.log" 2>&1 || { echo "cannot build $compare" >&2; exit 70; }
[ -x "$run" ] || { echo "$run is not built" >&2; exit 70; }
passed=0 failed=0

# row NAME VERDICT(0 ok) TEXT
row() {
    if [ "$2" = 0 ]; then passed=$((passed + 1)); word=ok; else failed=$((failed + 1)); word=FAILED; fi
    printf '%-7s %-34s %s\n' "$word" "$1" "$3"
}
value() { printf '%s\n' "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; } # of key=value words
holds() { awk "BEGIN { exit !($1) }"; } # an arithmetic condition
ran() { # ran NAME COMMAND...: a row only when it fails
    name=$1; shift
    "$@" >"$out/log" 2>&1 && return 0
    row "$name" 1 "$(tail -n 1 "$out/log" | cut -c1-160)"
    return 1
}

echo "device: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)"

# 1. every kernel of the module by itself
"$run" --selftest --device cuda >"$out/selftest.txt" 2>&1
row 'self-tests on cuda' $? "$(tail -n 1 "$out/selftest.txt")"
grep -v '^ok' "$out/selftest.txt" | head -n 20

scenes() {
    # 2. the golden sphere: exact counts
    for want in '64 9168 18332' '128 37080 74156' '256 150264 300524'; do
        set -- $want
        "$compare" sphere "$1" "$out/sphere.npz" || continue
        ran "sphere $1" "$run" --pipeline volume-to-mesh --dataset "$out/sphere.npz" --device cuda --out "$out/sphere-cuda" || continue
        ran "sphere $1" "$run" --pipeline volume-to-mesh --dataset "$out/sphere.npz" --device cpu --out "$out/sphere-cpu" || continue
        got=$("$compare" meshes "$out/sphere-cpu/mesh.ply" "$out/sphere-cuda/mesh.ply" "$(awk "BEGIN { print 2 / ($1 - 1) }")")
        [ "$(value "$got" vertices)" = "$2,$2" ] && [ "$(value "$got" faces)" = "$3,$3" ] && [ "$(value "$got" euler)" = 2 ]
        row "sphere $1: counts" $? "$got"
        rm -rf "$out/sphere.npz" "$out/sphere-cuda" "$out/sphere-cpu"
    done

    # 3. the kitchen: volumes and meshes of both devices
    for cm in 4 2; do
        voxel=0.0$cm
        for device in cpu cuda; do
            ran "kitchen $cm cm on $device" "$run" --pipeline "$here/kitchen.conf" --dataset "$data/rgbd-kitchen" --device $device \
                --set fuse.voxel=$voxel --out "$out/$device-$cm" --format json || continue
            mv "$out/log" "$out/report-$device-$cm.json"
        done
        [ -f "$out/cpu-$cm/volume.npz" ] && [ -f "$out/cuda-$cm/volume.npz" ] || continue
        got=$("$compare" volumes "$out/cpu-$cm/volume.npz" "$out/cuda-$cm/volume.npz")
        holds "$(value "$got" agree) >= 0.9995"
        row "kitchen $cm cm: volumes" $? "$got"
        got=$("$compare" meshes "$out/cpu-$cm/mesh.ply" "$out/cuda-$cm/mesh.ply" $voxel)
        holds "$(value "$got" hausdorff) <= 0.05 && $(value "$got" euler_equal) == 1"
        row "kitchen $cm cm: meshes" $? "$got"
    done
    if [ -f "$data/rgbd-kitchen/tsdf_ref_4cm.npz" ] && [ -f "$out/cuda-4/volume.npz" ]; then
        got=$("$compare" volumes "$data/rgbd-kitchen/tsdf_ref_4cm.npz" "$out/cuda-4/volume.npz")
        holds "$(value "$got" agree) >= 0.9995 && $(value "$got" inside) > 0.255891 && $(value "$got" inside) < 0.256091"
        row 'kitchen 4 cm: against the oracle' $? "$got"
    fi

    # what others mean by a volume, and colours or none: the same files
    # alike NAME SETTINGS...: volume, mesh and picture of both devices
    alike() {
        what=$1; shift
        for device in cpu cuda; do
            ran "$what on $device" "$run" --pipeline "$here/kitchen.conf" --dataset "$data/rgbd-kitchen" --device $device --out "$out/alike-$device" \
                --set fuse.voxel=0.03 "$@" || return
        done
        diff -r "$out/alike-cpu" "$out/alike-cuda" >"$out/log" 2>&1
        row "$what: same files" $? "$(head -n 1 "$out/log")"
        rm -rf "$out/alike-cpu" "$out/alike-cuda"
    }
    for compat in recon tsdf-fusion open3d nvblox; do
        for layout in dense blocks; do
            alike "kitchen, $compat, $layout" --set fuse.compat=$compat --set fuse.layout=$layout
            alike "kitchen, $compat, $layout, no colour" --set fuse.compat=$compat --set fuse.layout=$layout --set fuse.color=false
        done
    done

    # 4. the same bits from run to run
    if [ -f "$out/cuda-2/mesh.ply" ]; then
        ran 'kitchen 2 cm again' "$run" --pipeline "$here/kitchen.conf" --dataset "$data/rgbd-kitchen" --device cuda \
            --set fuse.voxel=0.02 --out "$out/again"
        cmp "$out/cuda-2/mesh.ply" "$out/again/mesh.ply" && cmp "$out/cuda-2/volume.npz" "$out/again/volume.npz"
        row 'kitchen 2 cm: same bits again' $? ''
        rm -rf "$out/again"
    fi

    # 5. an analytic scene, nothing on disk between
    for scene in room office objects columns; do
        for device in cpu cuda; do
            ran "$scene on $device" "$run" --pipeline scene-to-mesh --set scene.scene=$scene --device $device --out "$out/$scene-$device" || continue 2
        done
        got=$("$compare" meshes "$out/$scene-cpu/mesh.ply" "$out/$scene-cuda/mesh.ply" 0.03)
        holds "$(value "$got" hausdorff) <= 0.05 && $(value "$got" euler_equal) == 1"
        row "scene '$scene': meshes" $? "$got"
    done

    # 6. frames to a mesh that is checked, cleaned, filled and simplified: every file of both devices the same
    clean='--pipeline rgbd-to-clean-mesh --set fuse.voxel=0.02'
    for device in cpu cuda; do
        ran "kitchen cleaned on $device" "$run" $clean --dataset "$data/rgbd-kitchen" --device $device --out "$out/clean-$device"
        [ $device = cpu ] || cp "$out/log" "$out/clean.txt"
    done
    diff -r "$out/clean-cpu" "$out/clean-cuda" >"$out/clean.diff" 2>&1
    row 'kitchen cleaned and simplified' $? "$(head -n 1 "$out/clean.diff" | cut -c1-100) $(ls "$out/clean-cuda" 2>/dev/null | tr '\n' ' ')"
    cat "$out/clean.txt"
}
part scenes && scenes

# 7. meshes and clouds that were measured, whole and broken ones: the same files, status and messages
# same PIPELINE FILE
same() {
    for device in cpu cuda; do
        rm -rf "$out/same-$device"
        "$run" --pipeline "$1" --dataset "$2" --device $device --out "$out/same-$device" >/dev/null 2>"$out/log"
        echo "status $?" >"$out/same-$device.txt"
        sed '/^step /,$d' "$out/log" >>"$out/same-$device.txt" # its messages
        steps=$(grep -c ' cuda  ' "$out/log") # of the table
        [ ! -d "$out/same-$device" ] || (cd "$out/same-$device" && find . -type f -exec cksum {} + | sort) >>"$out/same-$device.txt"
    done
    said=$(head -n 1 "$out/same-cuda.txt")
    diff "$out/same-cpu.txt" "$out/same-cuda.txt" >"$out/log" 2>&1 && { [ "$said" != 'status 0' ] || [ "$steps" -gt 0 ]; }
    row "$(basename "$2") $(basename "$1" .conf)" $? "$said, $(wc -l <"$out/same-cuda.txt") lines, $steps steps on cuda $(sed -n 2p "$out/log" | cut -c1-160)"
}
scans() {
    for file in "$data"/meshes/*.obj "$data"/meshes-broken/*.o??; do
        [ -f "$file" ] || continue
        same mesh-clean "$file"
        same "$here/mesh.conf" "$file"
    done
    for file in "$data"/pointclouds/*.*; do
        case $file in *.ply | *.pcd | *.xyz) same points-to-voxels "$file" ;; esac
    done
}
part scans && scans

# 8. meshes and points: the same bytes as the host's and the plain form's
agree=$build/tests/gpu/agree
if part agree || part sanitizers; then
    [ -x "$agree" ] || make -C "$build" tests/gpu/agree >"$out/make.log" 2>&1 || { echo "cannot build $agree" >&2; exit 70; }
fi
for other in cpu ref; do
    part agree || break
    small=; [ $other = ref ] && small=--small
    "$agree" "$build/lib/recon/cuda.so" "$build/lib/recon/$other.so" $small >"$out/agree-$other.txt" 2>&1
    row "meshes and points: cuda = $other" $? "$(grep -c '^ok' "$out/agree-$other.txt") lines"
    cat "$out/agree-$other.txt"
done

# 9. NVIDIA's checker, where it is: memory, what was never written, races in shared memory. Five at once, each on processors of its own;
# the races take longest, some five minutes.
checker=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
# check TOOL CPUS PART...: each part's lines into OUT/TOOL-PART.txt, its status into OUT/TOOL-PART.rc
check() {
    tool=$1 cpus=$2; shift 2
    for name; do
        case $name in
            scene) set -- "$run" --pipeline scene-to-mesh --device cuda --out "$out/check-$tool" --set scene.frames=10 --set scene.width=160 \
                       --set scene.height=120 --set fuse.voxel=0.06 --set preview.width=160 --set preview.height=120 ;;
            *) set -- "$agree" "$build/lib/recon/cuda.so" "$build/lib/recon/cpu.so" --small "$name" ;;
        esac
        taskset -c "$cpus" "$checker" --tool "$tool" --error-exitcode 9 "$@" >"$out/$tool-$name.txt" 2>&1
        echo $? >"$out/$tool-$name.rc"
    done
}
sanitizers() {
    all='scene volumes points simplify meshes fill clean' each=$(($(nproc) / 5))
    [ -n "$checker" ] || { echo "-       compute-sanitizer is not here"; return; }
    [ $each -ge 1 ] || each=1
    rm -f "$out"/*check-*.rc
    n=0 pids=
    for what in "memcheck $all" "initcheck $all" 'racecheck scene volumes points simplify' 'racecheck meshes fill' 'racecheck clean'; do
        first=$((n * each % $(nproc))) n=$((n + 1))
        check ${what%% *} $first-$((first + each - 1)) ${what#* } &
        pids="$pids $!"
    done
    wait $pids
    for tool in memcheck initcheck racecheck; do
        for name in $all; do
            row "compute-sanitizer $tool, $name" "$(cat "$out/$tool-$name.rc")" "$(grep 'SUMMARY' "$out/$tool-$name.txt" | tail -n 1 | cut -c1-100)"
        done
    done
}
part sanitizers && sanitizers

# 10. times: the kitchen at 2 cm, five times in one process
for device in cuda cpu; do
    part times || break
    n=5; [ $device = cpu ] && n=2
    "$run" --pipeline rgbd-to-mesh --dataset "$data/rgbd-kitchen" --device $device --repeat $n --out "$out/time-$device" \
        --set fuse.voxel=0.02 >"$out/time-$device.txt" 2>&1
    row "times on $device" $? ''
    cat "$out/time-$device.txt"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]

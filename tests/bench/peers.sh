#!/bin/sh
# peers.sh [ROUNDS [REPEAT]]: kernels of cpu.so against others' programs, on this machine, as a table.
#
# Run in the build folder after 'make lib/recon/cpu.so tests/bench/peers'; DATA is the folder of the test data. Needs (Debian)
# python3-vtk9 python3-skimage python3-open3d libmeshoptimizer-dev libcgal-dev g++. The two of a row take turns, ROUNDS (3)
# times, each process REPEAT (5) runs after a first that counts too; the least of each is compared.
#
# Equal work: files are read and frames decoded before the time begins, but for 'load'. THREADS (2) for both where both can be
# told; wall and processor time are both the least; on a busy machine only the latter means much, and "met" is said of it.
# The fusion: both hold 16^3 blocks near the surface, 2 cm, a band of 4 voxels, all depths to 5 m; recon goes through the frames twice
# and fuses every frame into every block that it sees, Open3D fuses a frame into the blocks that it touches (updates N says how much
# each did). The frames' arrays last, so that neither copies them. "ours fuse FOLDER --dense" is the dense volume.
# Open3D by OMP_NUM_THREADS; CGAL, meshoptimizer, skimage and Open3D's subdivision have one thread by their nature.
# ROWS="mc fuse ..." takes some of the rows.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-3} repeat=${2:-5} threads=${THREADS:-2} python=${PYTHON:-/usr/bin/python3}
data=${DATA:?peers.sh: DATA is not set: the folder of the test data}
so=lib/recon/cpu.so peers=tests/bench/peers
for f in "$so" "$peers"; do
    [ -e "$f" ] || { echo "peers.sh: no '$f' here: run 'make $so $peers' in the build folder" >&2; exit 66; }
done
export THREADS="$threads" OMP_NUM_THREADS="$threads" OMP_WAIT_POLICY=passive
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
bunny=$data/meshes/stanford-bunny.obj rocker=$data/meshes/rocker-arm.obj kitchen=$data/rgbd-kitchen

ours() { "$peers" "$so" "$@" --repeat "$repeat" --threads "$threads"; }
theirs() { case=$1; shift; "$python" "$here/peers.py" "$case" "$repeat" "$@"; }
cgal() { "$T/cgal" "$1" "$repeat"; }
meshopt() { "$T/meshopt" "$bunny" 10000 "$repeat" "$T/meshopt.obj"; }
build() { [ -x "$T/$1" ] || ${CXX:-c++} -O3 -march=native -DNDEBUG -o "$T/$1" "$here/peers_$1.cpp" $2; }

# row NAME WANTED-RATIO OURS... -- THEIRS...: the least of each and how many times faster recon is
row() {
    name=$1 want=$2; shift 2
    a= ; while [ "$1" != -- ]; do a="$a $1"; shift; done; shift
    : >"$T/a"; : >"$T/b"
    i=0
    while [ $i -lt "$rounds" ]; do
        $a >>"$T/a" && "$@" >>"$T/b" || { echo "$name: failed" >&2; return 0; }
        i=$((i + 1))
    done
    awk -v n="$name" -v want="$want" '
        FNR == 1 { file++ }
        { if (!(file in ms) || $2 < ms[file]) ms[file] = $2
          if (!(file in cpu) || $4 < cpu[file]) cpu[file] = $4
          $1 = $2 = $3 = $4 = ""; sub(/^ +/, ""); words[file] = $0 }
        END { r = ms[2] / ms[1]; c = cpu[2] / cpu[1]
              printf "%-34s %9.2f %9.2f %7.2f %9.2f %9.2f %7.2f  %-6s %s  [%s | %s]\n", n, ms[1], ms[2], r, cpu[1], cpu[2], c, want,
              want == "-" ? "" : c >= want ? "met" : "missed", words[1], words[2] }' "$T/a" "$T/b"
}

printf 'threads %s, rounds %s, runs a round %s; %s\n' "$threads" "$rounds" "$((repeat + 1))" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
printf '%-34s %9s %9s %7s %9s %9s %7s  %s\n' 'least of all runs, ms' recon peer ratio 'cpu recon' peer ratio 'wanted [recon | peer]'
for r in ${ROWS:-mc fuse loop simplify load sign}; do
    case $r in
    mc)
        row 'marching cubes / VTK' 2 ours mc -- theirs mc-vtk
        row 'marching cubes / skimage' - ours mc -- theirs mc-skimage
        ;;
    fuse)
        row 'tsdf / Open3D, depth' 5 ours fuse "$kitchen" -- theirs fuse-open3d "$kitchen" depth
        row 'tsdf / Open3D, depth and colour' 5 ours fuse "$kitchen" --color -- theirs fuse-open3d "$kitchen" color
        ;;
    loop)
        build cgal '-lgmp -lmpfr'
        row 'Loop / Open3D' 20 ours loop "$bunny" -- theirs loop-open3d "$bunny"
        row 'Loop / CGAL' 1 ours loop "$bunny" -- cgal "$bunny"
        ;;
    simplify)
        build meshopt -lmeshoptimizer
        mkdir -p "$T/simple"
        row 'simplify / meshoptimizer' 0.667 ours simplify "$bunny" --faces 10000 --out "$T/simple" -- meshopt
        "$python" "$here/peers.py" rms "$bunny" "$T/simple/mesh.obj" "$T/meshopt.obj" | sed '1s/^/  recon:         /; 2s/^/  meshoptimizer: /'
        ;;
    load)
        mkdir -p "$T/fine"
        "$peers" "$so" loop "$bunny" --levels 2 --repeat 0 --out "$T/fine" >/dev/null
        row 'OBJ load, bunny / Open3D' - ours load "$bunny" -- theirs load-open3d "$bunny"
        row 'OBJ load, bunny twice finer/Open3D' - ours load "$T/fine/mesh.obj" -- theirs load-open3d "$T/fine/mesh.obj"
        { ours load "$T/fine/mesh.obj"; ours copy; } | awk '{ for (i = 1; i < NF; i++) if ($i == "bytes") b = $(i + 1); v[NR] = b / $2 / 1e6 }
            END { printf "  load %.3f GB/s, memcpy %.2f GB/s: a share of %.3f\n", v[1], v[2], v[1] / v[2] }'
        ;;
    sign)
        "$python" "$here/peers.py" points "$rocker" 100000 "$T/points"
        row 'check_sign / VTK, 100,000 points' 5 ours sign "$rocker" --points "$T/points" -- theirs sign-vtk "$rocker" "$T/points"
        row 'the same by winding numbers / VTK' - ours sign "$rocker" --points "$T/points" --winding -- theirs sign-vtk "$rocker" "$T/points"
        ;;
    esac
done

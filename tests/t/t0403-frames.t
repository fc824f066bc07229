#!/bin/sh
# Frames: scans made and read back, damaged ones refused with one line and nothing left behind.
. "${abs_top_srcdir:?}/tests/lib.sh"
ulimit -c 0

make_scan() { # DIR [SET...]
    d=$1; shift
    rm -rf "$d"
    recon-run --pipeline make-scan --set scene.frames=6 --set scene.width=96 --set scene.height=72 --out "$d" --device cpu "$@"
}
mesh() { # DIR OUT [SET...]
    i=$1 o=$2; shift 2
    rm -rf "$o" "$T/events"
    recon-run --pipeline rgbd-to-mesh --dataset "$i" --out "$o" --events "$T/events" --device cpu --set fuse.voxel=0.05 \
        --set preview.width=64 --set preview.height=48 "$@"
}
refused() { # 'name' TEXT: mesh of $T/scan ends with 65, one line that holds TEXT, and no output
    tap 65 "$1" mesh "$T/scan" "$T/mesh"
    has "$T/err" "$2" "... told: $2"
    grep -v 'warning' "$T/err" >"$T/err1"
    one_line "$T/err1" '... in one line'
    if [ -e "$T/mesh/mesh.ply" ]; then not_ok '... no mesh is left'; else ok '... no mesh is left'; fi
}
pose() { printf '%s\n' "$2" >"$T/scan/frame-00000$1.pose.txt"; }
nan='nan nan nan nan nan nan nan nan nan nan nan nan nan nan nan nan'

for s in room office objects columns; do
    tap 0 "scene $s" make_scan "$T/scan" --set scene.scene=$s
    tap 0 "... to a mesh" mesh "$T/scan" "$T/mesh"
done
if [ -s "$T/scan/camera-intrinsics.txt" ] && [ -s "$T/scan/frame-000005.color.jpg" ]; then ok 'the layout of a scan'
else not_ok 'the layout of a scan' "$(ls "$T/scan")"; fi
make_scan "$T/a" --set scene.seed=4 --threads 1 2>"$T/err"
make_scan "$T/b" --set scene.seed=4 --threads 3 2>"$T/err"
rm -f "$T"/[ab]/recon.json
tap 0 'a seed gives the same bytes, whatever the threads' diff -r "$T/a" "$T/b"
make_scan "$T/b" --set scene.seed=5 2>"$T/err"
tap 1 'another seed does not' diff -q "$T/a/frame-000002.depth.png" "$T/b/frame-000002.depth.png"
tap 0 'PNG colours' make_scan "$T/b" --set write.color=png --set scene.noise=0
tap 0 '... are read' mesh "$T/b" "$T/mesh"

make_scan "$T/scan" 2>"$T/err"
pose 1 "$nan"
tap 0 'a pose that is not finite is left out' mesh "$T/scan" "$T/mesh"
has "$T/err" 'frame-000001' 'and named'
has "$T/events" '"rule":"pose-invalid"' 'by its rule'
has "$T/err" 'the frame is skipped' 'and the warning says what became of it'
tap 65 'or ends the step when asked' mesh "$T/scan" "$T/mesh" --set read.bad_frames=stop
pose 2 "$nan"; pose 3 '1 0 0 0 0 1 0 0 0 0 -1 0 0 0 0 1'
tap 0 'half of the frames are enough' mesh "$T/scan" "$T/mesh"
rm "$T/scan/frame-000004.pose.txt"
refused 'fewer are not' 'only 2 of 6 frames'

make_scan "$T/scan" 2>"$T/err"
head -c 900 "$T/scan/frame-000003.depth.png" >"$T/cut" && cp "$T/cut" "$T/scan/frame-000003.depth.png"
refused 'a truncated depth picture' 'frame-000003.depth.png'
make_scan "$T/scan" 2>"$T/err"
head -c 700 "$T/scan/frame-000002.color.jpg" >"$T/cut" && cp "$T/cut" "$T/scan/frame-000002.color.jpg"
refused 'a truncated colour picture' 'frame-000002.color.jpg'
tap 0 '... which is not asked for' mesh "$T/scan" "$T/mesh" --set read.color=false
make_scan "$T/scan" 2>"$T/err"
rm "$T/scan/camera-intrinsics.txt"
refused 'a scan that was not finished' 'camera-intrinsics.txt'
rm -rf "$T/scan"; mkdir "$T/scan"
refused 'an empty folder' 'holds no frame'
rm -rf "$T/scan"
refused 'no such dataset' "$T/scan"
mkfifo "$T/scan"
refused 'a FIFO as dataset' 'is a FIFO'
rm "$T/scan"; echo text >"$T/scan"
refused 'a file as dataset' 'a folder of frames is wanted'

make_scan "$T/scan" 2>"$T/err"
tap 65 'depth in other units' mesh "$T/scan" "$T/mesh" --set read.depth_scale=1 --set fuse.bounds='-3,3,-2,2,-3,3'
has "$T/err" 'depth_scale' '... the likely cause is told'
tap 65 'all depth cut off' mesh "$T/scan" "$T/mesh" --set read.depth_max=0.01
has "$T/events" '"rule":"empty-result"' '... by its rule'
tap 65 'a volume that no memory holds' mesh "$T/scan" "$T/mesh" --set fuse.voxel=0.02 --set fuse.bounds='0,51.3,0,81.22,0,36.42'
has "$T/err" '2565 x 4061 x 1821' '... with its numbers'
has "$T/events" '"rule":"volume-too-big"' '... by its rule'
finish

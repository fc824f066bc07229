#!/bin/sh
# The shipped pipelines with the real kernels on a tiny made scan; bad datasets, each with one clear line.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset RECON_RUN RECON_EVENTS_FD
cd "$T" || exit 99
P=$abs_top_srcdir/examples/pipelines
small="--set scene.frames=12 --set scene.width=160 --set scene.height=120"

tap 0 'make-scan, by its name' recon-run --device cpu --pipeline make-scan --out scan $small --set scene.scene=objects
[ -f scan/frame-000011.depth.png ] && [ -f scan/frame-000011.pose.txt ] && [ -f scan/camera-intrinsics.txt ] &&
    ok 'it has frames, poses and intrinsics' || not_ok 'it has frames, poses and intrinsics' "$(ls scan)"
tap 0 'rgbd-to-mesh' recon-run --device cpu --pipeline rgbd-to-mesh --dataset scan --out mesh --set fuse.voxel=0.06 \
    --set preview.width=160 --set preview.height=120 --format json
[ -s mesh/mesh.ply ] && [ -s mesh/preview.png ] && ok 'a mesh and a picture' || not_ok 'a mesh and a picture' "$(ls mesh)"
has out '"outputs"' 'the report is JSON'
tap 0 'the same with the plain references' recon-run --device ref --pipeline rgbd-to-mesh --dataset scan --out ref \
    --set fuse.voxel=0.06 --set preview.width=160 --set preview.height=120
"$abs_top_builddir/tests/gpu/compare" meshes mesh/mesh.ply ref/mesh.ply 0.06 >out 2>&1
grep -q ' hausdorff=0.000.* euler_equal=1 ' out && ok 'gives the same mesh' || not_ok 'gives the same mesh' "$(cat out)"
tap 0 'scene-to-mesh, nothing on disk between' recon-run --device cpu --pipeline "$P/scene-to-mesh.conf" --out direct $small \
    --set fuse.voxel=0.06 --set preview.width=160 --set preview.height=120
[ -s direct/mesh.ply ] && ok 'a mesh' || not_ok 'a mesh'
cat >vol.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "frames.read"; }, { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.06; }; },
          { name = "keep"; kernel = "volume.write"; } );
C
tap 0 'a volume into a file' recon-run --device cpu --pipeline ./vol.conf --dataset scan --out vol
tap 0 'volume-to-mesh' recon-run --device cpu --pipeline volume-to-mesh --dataset vol --out again --set preview.width=160 \
    --set preview.height=120
cmp mesh/mesh.ply again/mesh.ply >out 2>&1 && ok 'gives the same mesh' || not_ok 'gives the same mesh' "$(cat out)"
for p in rgbd-to-mesh make-scan scene-to-mesh volume-to-mesh; do
    tap 0 "self-test of $p" recon-run --device cpu --pipeline $p --selftest
done
tap 0 'estimate' recon-run --device cpu --pipeline rgbd-to-mesh --dataset scan --estimate
has out 'host at most' 'tells memory'

bad() { # STATUS NAME DATASET
    tap "$1" "$2" recon-run --device cpu --pipeline rgbd-to-mesh --dataset "$3" --out bad
    one_line err "$2: one line"
    [ ! -e bad ] && ok "$2: nothing is left" || not_ok "$2: nothing is left"
}
bad 65 'no such dataset' "$T/none"
mkfifo fifo
bad 65 'a FIFO as dataset' "$T/fifo"
cp -r scan cut && head -c 300 scan/frame-000005.depth.png >cut/frame-000005.depth.png
bad 65 'a truncated picture' "$T/cut"
tap 64 'no dataset' recon-run --device cpu --pipeline rgbd-to-mesh --out bad
finish

#!/bin/sh
# The CUDA kernels on a fake of the runtime (tests/fakes/cuda): the same volumes, meshes and pictures as the CPU's, bit
# by bit. Races and speed are tests/gpu/run.sh's, on a machine with a GPU.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset RECON_RUN RECON_EVENTS_FD
cuda=$(sed -n 's/^CUDA_ROOT = //p' "$abs_top_builddir/Makefile")
[ -n "$cuda" ] && [ -f "$cuda/include/cuda_runtime.h" ] || skip_all 'the CUDA kernels are not built here'
grep -q '^SAN_CFLAGS = .*-fsanitize' "$abs_top_builddir/Makefile" && skip_all 'contexts that take turns confuse the sanitizers'
cd "$T" || exit 99
K=$T/kernels
mkdir -m 755 "$K"
tap 0 'it compiles' sh "$abs_top_srcdir/tests/fakes/cuda/build.sh" "$abs_top_srcdir" "$abs_top_builddir" "$cuda" "$K"
rm -rf "$K/work"
cp "$abs_top_builddir/lib/recon/cpu.so" "$K/" || exit 99
run() { recon-run --kernels "$K" "$@"; }
tap 0 'self-tests' run --device cuda --selftest
has out ' 0 failed' 'all pass'
tap 0 'kernels of meshes and points give the bytes of the CPU' "$abs_top_builddir/tests/gpu/agree" "$K/cuda.so" "$K/cpu.so" --small
small='--set scene.width=96 --set scene.height=72'
# on KERNEL DEVICE EVENTS: where a step ran
on() {
    if grep "\"kernel\":\"$1\"" "$3" | grep -q "\"device\":\"$2"; then ok "$1 runs on $2"; else not_ok "$1 runs on $2" "$(cat "$3")"; fi
}
for scene in room objects; do
    for device in cpu cuda; do
        tap 0 "frames of '$scene' on $device" run --pipeline make-scan --device $device --out "scan-$device" $small \
            --set scene.frames=3 --set scene.scene=$scene
        tap 0 "its mesh on $device" run --pipeline scene-to-mesh --device $device --out "mesh-$device" $small \
            --set scene.frames=11 --set scene.scene=$scene --set fuse.voxel=0.1 --set preview.width=40 --set preview.height=30
    done
    diff -r scan-cpu scan-cuda >out 2>&1 && ok 'the same frames' || not_ok 'the same frames' "$(cat out)"
    diff -r mesh-cpu mesh-cuda >out 2>&1 && ok 'the same mesh and picture' || not_ok 'the same mesh and picture' "$(cat out)"
    rm -rf scan-* mesh-*
done
# volumes in blocks, their meshes and their pictures
for device in cpu cuda; do
    tap 0 "layout=blocks on $device" run --pipeline scene-to-mesh --device $device --out "mesh-$device" $small --set scene.frames=5 \
        --set fuse.voxel=0.1 --set fuse.layout=blocks --set preview.width=40 --set preview.height=30 --events "$T/events-$device"
done
for kernel in tsdf.fuse mesh.marching_cubes render.preview; do
    on "$kernel" cuda events-cuda
done
diff -r mesh-cpu mesh-cuda >out 2>&1 && ok '... the same mesh and picture' || not_ok '... the same mesh and picture' "$(cat out)"
rm -rf mesh-* events-*
# volumes by every meaning, with colours and without, on frames with noise: a picture's last columns and rows, and depths beyond reach
cat >fuse.conf <<'C'
version = 1;
steps = ( { name = "scene"; kernel = "scene.render_rgbd"; params = { frames = 5; width = 96; height = 72; noise = 1.0; scene = "columns"; }; },
          { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.15; }; },
          { name = "keep"; kernel = "volume.write"; } );
C
# fused NAME SETTINGS...: the same volume on both devices, fused where it is asked for
fused() {
    name=$1; shift
    for device in cpu cuda; do
        tap 0 "$name on $device" run --pipeline ./fuse.conf --device $device --out fuse-$device --events "$T/events-$device" "$@"
    done
    on tsdf.fuse cuda events-cuda
    diff -r fuse-cpu fuse-cuda >out 2>&1 && ok '... the same volume' || not_ok '... the same volume' "$(cat out)"
    rm -rf fuse-* events-*
}
for compat in recon tsdf-fusion open3d nvblox; do
    for layout in dense blocks; do
        fused "compat $compat, $layout" --set fuse.compat=$compat --set fuse.layout=$layout
        fused "compat $compat, $layout, no colour, few weights" --set fuse.compat=$compat --set fuse.layout=$layout --set fuse.color=false \
            --set fuse.weight_max=1.5
    done
done
# three batches of frames that stay on the device between the two turns
fused 'blocks of 70 frames' --set fuse.layout=blocks --set scene.frames=70 --set scene.width=48 --set scene.height=36
# what is refused, in the same words
for device in cpu cuda; do
    tap 65 "no block on $device" run --pipeline ./fuse.conf --device $device --out none --set fuse.layout=blocks \
        --set fuse.bounds=100,101,100,101,100,101
    cp err none-$device
done
cmp none-cpu none-cuda >out 2>&1 && ok '... told alike' || not_ok '... told alike' "$(cat none-cuda)"
# a sample that lies beyond the picture by the margin to which float is trusted, of which one in 10^8 is met
tap 0 'frames of 640 x 480' run --pipeline make-scan --device cpu --out scan-wide --set scene.frames=10 --set scene.width=640 --set scene.height=480 \
    --set scene.noise=0
cat >wide.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "frames.read"; params = { color = false; }; },
          { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.058; color = false; }; },
          { name = "keep"; kernel = "volume.write"; } );
C
for device in cpu cuda; do
    tap 0 "the picture's edge on $device" run --pipeline ./wide.conf --dataset scan-wide --device $device --out wide-$device
done
diff -r wide-cpu wide-cuda >out 2>&1 && ok 'the same volume' || not_ok 'the same volume' "$(cat out)"
rm -rf scan-wide wide-cpu wide-cuda
# marching cubes with its other options on a noisy volume: ambiguous cells, padding, occupancy
cat >odd.conf <<'C'
version = 1;
steps = ( { name = "scene"; kernel = "scene.render_rgbd"; params = { frames = 2; width = 64; height = 48; noise = 4.0; }; },
          { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.11; truncation = 3; weight_max = 1.0; compat = "tsdf-fusion"; color = false; }; },
          { name = "lt"; kernel = "mesh.marching_cubes"; params = { iso = 0.1; min_weight = -1; pad = true; }; },
          { name = "save"; kernel = "mesh.write"; },
          { name = "ge"; kernel = "mesh.marching_cubes"; params = { iso = 0.3; inside = "ge"; min_weight = -1; pad = true; }; out = { mesh = "other"; }; },
          { name = "save2"; kernel = "mesh.write"; in = { mesh = "other"; }; params = { file = "other.ply"; }; },
          { name = "keep"; kernel = "volume.write"; } );
C
for device in cpu cuda; do
    tap 0 "other options on $device" run --pipeline ./odd.conf --device $device --out odd-$device
done
diff -r odd-cpu odd-cuda >out 2>&1 && ok 'the same again' || not_ok 'the same again' "$(cat out)"
# what a mesh has beyond vertices and faces goes to the device and comes back
cat >ball.obj <<'O'
mtllib ball.mtl
v 1 0 0
v -1 0 0
v 0 1 0
v 0 -1 0
v 0 0 1
v 0 0 -1
vt 0 0
vt 1 0
vt 0.5 1
vn 0 0 1
o top
usemtl a
f 1/1/1 3/2/1 5/3/1
f 3/1/1 2/2/1 5/3/1
f 2/1 4/2 5/3
g rest
f 4 1 5
f 3 1 6
f 2 3 6
f 4 2 6
f 1 4 6
O
printf 'newmtl a\nKd 1 0 0\n' >ball.mtl
cat >ball.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "smooth"; kernel = "mesh.smooth"; params = { iterations = 2; }; },
          { name = "normals"; kernel = "mesh.normals"; }, { name = "check"; kernel = "mesh.check"; },
          { name = "save"; kernel = "mesh.write"; params = { file = "ball.obj"; }; } );
C
for device in cpu cuda; do
    tap 0 "a mesh with materials on $device" run --pipeline ./ball.conf --dataset ball.obj --device $device --out ball-$device
    has err "'mesh.smooth' does not keep normals of corners" 'told what is not kept'
done
diff -r ball-cpu ball-cuda >out 2>&1 && ok 'the same files' || not_ok 'the same files' "$(cat out)"
has ball-cuda/ball.obj 'f 2/1/2 4/2/4 5/3/5' 'with texture coordinates'
has ball-cuda/ball.obj 'usemtl a' 'and materials'
has ball-cuda/mesh-check.json '"euler": 2' 'and a census'
sed 's/^f 4 2 6$/# a hole/' ball.obj >open.obj
cat >open.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "fill"; kernel = "mesh.fill_holes"; }, { name = "save"; kernel = "mesh.write"; params = { file = "ball.obj"; }; } );
C
for device in cpu cuda; do
    tap 0 "its hole filled on $device" run --pipeline ./open.conf --dataset open.obj --device $device --out open-$device --events events-open-$device
done
on mesh.fill_holes cuda events-open-cuda
diff -r open-cpu open-cuda >out 2>&1 && ok 'the same files' || not_ok 'the same files' "$(cat out)"
[ "$(grep -c '^f ' open-cuda/ball.obj)" = 8 ] && ok 'the hole is closed' || not_ok 'the hole is closed' "$(cat open-cuda/ball.obj)"
# one edge after the other is the CPU's, many at once is the device's
cat >less.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "less"; kernel = "mesh.simplify"; params = { faces = 6; }; },
          { name = "save"; kernel = "mesh.write"; params = { file = "less.obj"; }; } );
C
for how in levels rounds; do
    for device in cpu cuda; do
        tap 0 "less by $how on $device" run --pipeline ./less.conf --dataset ball.obj --device $device --set less.method=$how --out less-$device \
            --events "$T/events-$device"
    done
    where=cuda; [ $how = levels ] && where=cpu
    on mesh.simplify $where events-cuda
    diff -r less-cpu less-cuda >out 2>&1 && ok 'the same mesh' || not_ok 'the same mesh' "$(cat out)"
    rm -rf less-cpu less-cuda events-*
done
# finer, smoothed and looked at without leaving the device
cat >fine.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "fine"; kernel = "mesh.subdivide"; params = { levels = 3; }; },
          { name = "smooth"; kernel = "mesh.smooth"; }, { name = "check"; kernel = "mesh.check"; params = { require = "closed"; }; },
          { name = "save"; kernel = "mesh.write"; } );
C
for device in cpu cuda; do
    tap 0 "a finer mesh on $device" run --pipeline ./fine.conf --dataset ball.obj --device $device --out fine-$device --events "$T/events-$device"
done
diff -r fine-cpu fine-cuda >out 2>&1 && ok 'the same mesh and census' || not_ok 'the same mesh and census' "$(cat out)"
has fine-cuda/mesh-check.json '"faces": 512' 'of 512 faces'
for kernel in subdivide smooth check; do
    on "mesh.$kernel" cuda events-cuda
done
# what steps give holds arrays of what they take, which may go before it or after it
cat >shared.conf <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; },
          { name = "normals"; kernel = "mesh.normals"; out = { mesh = "one"; }; },
          { name = "smooth"; kernel = "mesh.smooth"; in = { mesh = "one"; }; params = { iterations = 1; }; out = { mesh = "two"; }; },
          { name = "again"; kernel = "mesh.normals"; in = { mesh = "two"; }; out = { mesh = "three"; }; },
          { name = "first"; kernel = "mesh.write"; in = { mesh = "one"; }; params = { file = "one.obj"; }; },
          { name = "last"; kernel = "mesh.write"; in = { mesh = "three"; }; params = { file = "three.obj"; }; } );
C
for device in cpu cuda; do
    tap 0 "steps that share arrays on $device" run --pipeline ./shared.conf --dataset ball.obj --device $device --out shared-$device
done
diff -r shared-cpu shared-cuda >out 2>&1 && ok 'the same files' || not_ok 'the same files' "$(cat out)"
finish

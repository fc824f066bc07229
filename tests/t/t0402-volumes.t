#!/bin/sh
# Volumes: numpy loads what recon writes, recon reads what numpy writes, types and refusals.
. "${abs_top_srcdir:?}/tests/lib.sh"
python=
for p in "${RECON_TEST_PYTHON:-}" python3 /usr/bin/python3; do
    [ -n "$p" ] && "$p" -c 'import numpy' 2>/dev/null && python=$p && break
done

cat >"$T/copy.conf" <<'C'
version = 1;  name = "copy";
steps = ( { name = "read"; kernel = "volume.read"; }, { name = "write"; kernel = "volume.write"; } );
C
copy() { # IN OUT [SET...]
    in=$1 out=$2; shift 2
    rm -rf "$out"
    recon-run --pipeline "$T/copy.conf" --dataset "$in" --out "$out" --device cpu "$@"
}

if [ -n "$python" ]; then
    cat >"$T/make.py" <<'P'
import sys, numpy as np
d = sys.argv[1]
t = np.linspace(-1, 1, 6 * 5 * 7).reshape(6, 5, 7)
w = (np.arange(210) % 9).reshape(6, 5, 7)
o = np.array([1.0, -2.0, 0.5])
c = (np.arange(630) % 256).astype(np.uint8).reshape(6, 5, 7, 3)
def save(name, f=np.savez, **k): f(d + '/' + name + '.npz', **k)
save('plain', tsdf=t.astype('f4'), weight=w.astype('f4'), origin=o, voxel=0.04)
save('packed', np.savez_compressed, tsdf=t.astype('f4'), weight=w.astype('u2'), origin=o, voxel=0.04)
save('color', tsdf=t.astype('f8'), weight=w.astype('i4'), origin=o, voxel=np.float32(0.04), color=c)
save('half', tsdf=t.astype('f2'), weight=w.astype('u1'), origin=o.astype('f4'), voxel=np.array([0.04]), truncation=0.12)
save('bare', tsdf=t.astype('f4'), origin=o, voxel=0.04)
save('fortran', tsdf=np.asfortranarray(t.astype('f4')), origin=o, voxel=0.04)
save('big', tsdf=t.astype('>f4'), origin=o, voxel=0.04)
save('shapes', tsdf=t.astype('f4'), weight=w[1:].astype('f4'), origin=o, voxel=0.04)
save('novoxel', tsdf=t.astype('f4'), origin=o)
save('flat', tsdf=t.astype('f4')[0], origin=o, voxel=0.04)
save('other', depth=t.astype('f4'))
save('zero', tsdf=t.astype('f4'), origin=o, voxel=0.0)
blocks = np.array([[0, 0, 1], [1, 0, 0]], 'u2')
cubes = np.linspace(-1, 1, 1024).reshape(2, 8, 8, 8)
save('blocks', tsdf=cubes.astype('f4'), weight=np.ones((2, 8, 8, 8)), color=np.zeros((2, 8, 8, 8, 3), 'u1'), blocks=blocks, dim=[12, 8, 16], origin=o, voxel=0.04)
save('unordered', tsdf=cubes.astype('f4'), blocks=blocks[::-1], dim=[12, 8, 16], origin=o, voxel=0.04)
save('outside', tsdf=cubes.astype('f4'), blocks=blocks, dim=[8, 8, 16], origin=o, voxel=0.04)
save('nodim', tsdf=cubes.astype('f4'), blocks=blocks, origin=o, voxel=0.04)
save('side', tsdf=cubes[:, :7, :7, :7].astype('f4'), blocks=blocks, dim=[12, 8, 16], origin=o, voxel=0.04)
P
    cat >"$T/same.py" <<'P'
import sys, numpy as np
a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
assert b['tsdf'].dtype == np.float32 and np.array_equal(a['tsdf'].astype('f4'), b['tsdf']), 'tsdf'
if 'weight' in a: assert np.array_equal(a['weight'].astype('f4'), b['weight']), 'weight'
assert np.array_equal(a['origin'], b['origin']) and b['voxel'].shape == () and abs(a['voxel'] - b['voxel']).max() < 1e-8, 'frame'
if 'blocks' in a: assert np.array_equal(a['blocks'], b['blocks']) and np.array_equal(a['dim'], b['dim']) and float(b['beyond']) == 1, 'blocks'
if 'color' in a: assert np.array_equal(a['color'], b['colour']), 'colour'
want = float(a['truncation']) if 'truncation' in a else 5 * float(b['voxel'])
assert abs(float(b['truncation']) - want) < 1e-8, 'truncation'
P
    "$python" "$T/make.py" "$T"
    for v in plain packed color half bare blocks; do
        tap 0 "numpy's $v volume is read" copy "$T/$v.npz" "$T/res"
        tap 0 "and numpy loads the copy of $v" "$python" "$T/same.py" "$T/$v.npz" "$T/res/volume.npz"
    done
    tap 0 'stored members' copy "$T/packed.npz" "$T/res" --set write.compress=false
    tap 0 'and numpy loads them' "$python" "$T/same.py" "$T/packed.npz" "$T/res/volume.npz"
    while IFS='|' read -r v text; do
        tap 65 "refused: $v" copy "$T/$v.npz" "$T/res"
        has "$T/err" "$text" "and told: $text"
        one_line "$T/err" "in one line"
    done <<L
fortran|is in Fortran order
big|little-endian
shapes|array 'weight'
novoxel|no array 'voxel'
flat|has 2 axes
other|no array 'tsdf'
zero|no array 'voxel' of one number above 0
unordered|block 1 of
outside|has place 1 along axis 0 of 1
nodim|no array 'dim'
side|have 7 samples a side
L
else
    skip 'no python with numpy'
fi

# a volume in blocks through a file, and its mesh is that of the dense one
cat >"$T/keep.conf" <<'C'
version = 1;
steps = ( { name = "scene"; kernel = "scene.render_rgbd"; params = { frames = 6; width = 96; height = 72; }; },
          { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.08; }; }, { name = "keep"; kernel = "volume.write"; },
          { name = "surface"; kernel = "mesh.marching_cubes"; }, { name = "save"; kernel = "mesh.write"; } );
C
cat >"$T/mesh.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "volume.read"; }, { name = "surface"; kernel = "mesh.marching_cubes"; }, { name = "save"; kernel = "mesh.write"; } );
C
for l in dense blocks; do
    tap 0 "layout $l" recon-run --pipeline "$T/keep.conf" --out "$T/$l" --device cpu --set fuse.layout=$l
done
tap 0 'read again' recon-run --pipeline "$T/mesh.conf" --dataset "$T/blocks" --out "$T/again" --device cpu
for d in blocks again; do
    if cmp -s "$T/dense/mesh.ply" "$T/$d/mesh.ply"; then ok "the mesh of $d is the dense one"; else not_ok "the mesh of $d is the dense one"; fi
done
# 2100^3 samples, more than 32 bits count: in blocks the same surface as within the bounds of the room; dense, refused with its numbers
elements() { sed -n 's/^element \([vf]\)/\1/p' "$T/$1/mesh.ply" | tr '\n' ' '; }
tap 0 'bounds of 8 m, dense' recon-run --pipeline "$T/keep.conf" --out "$T/room" --device cpu --set fuse.layout=dense \
    --set 'fuse.bounds=-4.0,4.0,-4.0,4.0,-4.0,4.0'
tap 0 'bounds of 168 m, in blocks' recon-run --pipeline "$T/keep.conf" --out "$T/wide" --device cpu --set fuse.layout=blocks \
    --set 'fuse.bounds=-84.0,84.0,-84.0,84.0,-84.0,84.0'
case $(elements room) in 'vertex '[1-9]*' face '[1-9]*) ok 'a surface' ;; *) not_ok 'a surface' "$(elements room)" ;; esac
[ "$(elements room)" = "$(elements wide)" ] && ok 'the same counts' || not_ok 'the same counts' "$(elements room) $(elements wide)"
mem=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
if [ "${mem:-0}" -lt 80000000 ]; then
    tap 65 '... and dense' recon-run --pipeline "$T/keep.conf" --out "$T/full" --device cpu --set fuse.layout=dense \
        --set 'fuse.bounds=-84.0,84.0,-84.0,84.0,-84.0,84.0'
    has "$T/err" '2100 x 2100 x 2100 voxels' '... is refused with its numbers'
else
    skip 'memory for it'
fi

head -c 300 "$T/copy.conf" >"$T/garbage.npz"
tap 65 'garbage' copy "$T/garbage.npz" "$T/res"
one_line "$T/err" 'in one line'
mkfifo "$T/fifo.npz"
tap 65 'a FIFO does not hang' copy "$T/fifo.npz" "$T/res"
one_line "$T/err" 'in one line'
tap 65 'no such file' copy "$T/nowhere.npz" "$T/res"

k=$DATA/rgbd-kitchen
if [ -n "$DATA" ] && [ -d "$k" ]; then
    tap 0 'the reference volume opens' copy "$k/tsdf_ref_4cm.npz" "$T/res"
    tap 0 'and makes a mesh' recon-run --pipeline volume-to-mesh --dataset "$k/tsdf_ref_4cm.npz" --set surface.min_weight=-1 \
        --out "$T/mesh" --device cpu
    head -c 300 "$T/mesh/mesh.ply" | tr -d '\000' >"$T/head"
    has "$T/head" 'element vertex 59484' '59,461 crossed edges, as scikit-image counts them, and 23 centres of ambiguous cells'
    has "$T/head" 'element face 118274' '118,274 faces'
else
    skip 'no data folder'
fi
finish

#!/bin/sh
# Pipelines of meshes and points: holes, smoothing, simplification of real scans, the same bytes for any number of threads.
. "${abs_top_srcdir:?}/tests/lib.sh"
ulimit -c 0

number() { # FILE KEY
    sed -n "s/^  \"$2\": \([-0-9.e]*\),*\$/\1/p" "$T/res/$1"
}
is() { # FILE KEY VALUE 'name'
    got=$(number "$1" "$2")
    if [ "$got" = "$3" ]; then ok "$4"; else not_ok "$4" "$2 is '$got', wanted $3"; fi
}
clean() { # IN [OPTION...]
    i=$1; shift
    rm -rf "$T/res" "$T/events"
    recon-run --pipeline mesh-clean --dataset "$i" --out "$T/res" --events "$T/events" --device cpu "$@"
}

# a tetrahedron and a vertex in no face
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 9 9 9\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n' >"$T/t.obj"
tap 0 'a vertex in no face' clean "$T/t.obj" --set clean.unused=false --set save.file=mesh.obj
is before.json vertices 5 'five vertices'
is before.json used 4 'four of them in faces'
is after.json faces 4 'a tetrahedron is not simplified away'
if grep -q nan "$T/res/mesh.obj"; then not_ok 'all coordinates are finite'; else ok 'all coordinates are finite'; fi
tap 64 'simplify wants a target' clean "$T/t.obj" --set simplify.faces=0
tap 0 'the self-tests of mesh-clean' recon-run --pipeline mesh-clean --selftest --device cpu
tap 0 'the self-tests of points-to-voxels' recon-run --pipeline points-to-voxels --selftest --device cpu

# a large OBJ: 160,000 vertices, 318,402 faces
awk 'BEGIN{n=400;for(i=0;i<n;i++)for(j=0;j<n;j++)printf "v %d %d %.6f\n",i,j,sin(i*.1)*cos(j*.1);for(i=0;i<n-1;i++)for(j=0;j<n-1;j++){a=i*n+j+1;b=a+1;c=a+n;d=c+1;printf "f %d %d %d\nf %d %d %d\n",a,c,b,b,c,d}}' >"$T/grid.obj"
tap 0 'a large OBJ' clean "$T/grid.obj" --set simplify.faces=5000 --set smooth.border=fix
is before.json vertices 160000 'its vertices'
is before.json border 1596 'its border'
is after.json border 1596 'kept'
is after.json euler 1 'and its characteristic'
ms=$(sed -n 's/.*"type":"step".*"name":"read".*"wall_ms":\([0-9]*\).*/\1/p' "$T/events" | head -n 1)
if [ "${ms:-99999}" -lt 5000 ]; then ok 'read in seconds at most'; else not_ok 'read in seconds at most' "$ms ms"; fi
cp "$T/res/mesh.ply" "$T/first.ply"
tap 0 'again with one thread' clean "$T/grid.obj" --set simplify.faces=5000 --set smooth.border=fix --threads 1
tap 0 'the same bytes' cmp "$T/first.ply" "$T/res/mesh.ply"
tap 0 'to an error instead of a number' clean "$T/grid.obj" --set simplify.faces=0 --set simplify.max_error=0.02 --set smooth.border=fix
coarse=$(number after.json faces)
tap 0 'to a smaller one' clean "$T/grid.obj" --set simplify.faces=0 --set simplify.max_error=0.002 --set smooth.border=fix
fine=$(number after.json faces)
if [ "${coarse:-0}" -gt 1000 ] && [ "${fine:-0}" -gt "$((3 * coarse))" ] && [ "$fine" -lt 318402 ]; then
    ok 'leaves more faces'
else
    not_ok 'leaves more faces' "$coarse with 0.02 m, $fine with 0.002 m"
fi

if [ -n "$DATA" ]; then
    tap 0 'stanford-bunny' clean "$DATA/meshes/stanford-bunny.obj" --set simplify.faces=10000
    is before.json euler -3 'five holes'
    is after.json euler 2 'are filled'
    is after.json border 0 'no border is left'
    is after.json faces 10000 'and 10,000 faces'
    tap 0 'camelhead' clean "$DATA/meshes-broken/camelhead.off" --set fill.max_hole_edges=10 --set smooth.border=fix --set simplify.faces=3000
    has "$T/err" '1 longer than 10 edges' 'its border is too long to be closed'
    is after.json border "$(number before.json border)" 'and stays'
    is after.json euler 1 'so does its characteristic'
    for f in meshes-broken/cow.off meshes-broken/truck.obj meshes-broken/beetle.off meshes-broken/horse_quad.obj meshes/suzanne.obj \
        meshes/cow.obj meshes/teapot.obj meshes-broken/xatlas-degenerate_edge.obj meshes-broken/xatlas-duplicate_edge.obj; do
        tap 0 "$f" clean "$DATA/$f" --set simplify.faces=1000
        is after.json non_manifold 0 '... no edge of more than two faces'
        is after.json degenerate 0 '... no face that names a vertex twice'
    done
    tap 65 'a mesh of no area' clean "$DATA/meshes-broken/xatlas-zero_area_face.obj"
    has "$T/events" '"rule":"empty-result"' 'leaves nothing'
    tap 0 'points to voxels' recon-run --pipeline points-to-voxels --dataset "$DATA/pointclouds/room_scan1.pcd" --out "$T/vox" --device cpu
    if [ -s "$T/vox/voxels.npz" ] && [ -s "$T/vox/mesh.ply" ]; then ok 'a volume and its surface'; else not_ok 'a volume and its surface'; fi
    tap 65 'a grid that nothing holds' recon-run --pipeline points-to-voxels --dataset "$DATA/pointclouds/room_scan1.pcd" --out "$T/big" \
        --device cpu --set voxelize.resolution=9000 --set voxelize.form=dense
    grep -v warning "$T/err" >"$T/err1"
    has "$T/err1" '9000 x 9000 x 9000' 'is refused with its size'
else
    skip 'no data folder'
fi
finish

#!/bin/sh
# Meshes and points in files: forms, refusals in one line with nothing left behind, the census of real meshes.
. "${abs_top_srcdir:?}/tests/lib.sh"
ulimit -c 0

cat >"$T/copy.conf" <<'C'
version = 1;  name = "copy";
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "check"; kernel = "mesh.check"; }, { name = "save"; kernel = "mesh.write"; } );
C
cat >"$T/clean.conf" <<'C'
version = 1;  name = "clean";
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "clean"; kernel = "mesh.clean"; }, { name = "check"; kernel = "mesh.check"; } );
C
cat >"$T/points.conf" <<'C'
version = 1;  name = "points";
steps = ( { name = "read"; kernel = "points.read"; }, { name = "save"; kernel = "points.write"; } );
C
run() { # PIPELINE IN [OPTION...]
    c=$1 i=$2; shift 2
    rm -rf "$T/res" "$T/events"
    recon-run --pipeline "$T/$c.conf" --dataset "$i" --out "$T/res" --events "$T/events" --device cpu "$@"
}
number() { # KEY: of the census
    sed -n "s/^  \"$1\": \([-0-9.e]*\),*\$/\1/p" "$T/res/mesh-check.json"
}
is() { # KEY VALUE 'name'
    got=$(number "$1")
    if [ "$got" = "$2" ]; then ok "$3"; else not_ok "$3" "$1 is '$got', wanted $2"; fi
}

printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\n' >"$T/t.obj"
tap 0 'negative indices' run copy "$T/t.obj"
is area 0.5 'an area of one half'
is border 3 'and three border edges'
for f in obj glb ply; do
    tap 0 "written as .$f" run copy "$T/t.obj" --set "save.file=m.$f"
    if [ -s "$T/res/m.$f" ]; then ok '... there'; else not_ok '... there'; fi
done
tap 64 'no such form to write' run copy "$T/t.obj" --set save.file=m.stl
has "$T/err" '.ply, .obj, .glb' 'told'

printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 4 2\nf 1 3 4\nf 2 4 3\n' >"$T/in.obj"
tap 0 'turned inside out' run copy "$T/in.obj"
has "$T/events" '"rule":"inward-normals"' 'by its rule'
is volume -0.166666666667 'volume -1/6'
tap 0 'mended' run clean "$T/in.obj" --set clean.orient=outward
is volume 0.166666666667 'volume 1/6'

printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nvt -0.25 0\nvt 3.5 0\nvt 0 1\nf 1/1 2/2 3/3\n' >"$T/uv.obj"
tap 0 'texture coordinates outside' run copy "$T/uv.obj"
has "$T/events" '"rule":"uv-out-of-range"' 'by their rule'
has "$T/err" ': 1 faces' 'one face'
printf 'mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nf 1//1 2//1 3//1\nl 1 2\n' >"$T/mtl.obj"
tap 0 'a library of materials that is not there' run copy "$T/mtl.obj"
has "$T/events" '"rule":"texture-missing"' '... is told by its rule'
has "$T/err" "'m.mtl' is not there" '... and name'
has "$T/err" '1 lines that are of no mesh' '... and so is a line of another kind'

refused() { # 'name' FILE TEXT RULE
    tap 65 "$1" run copy "$2"
    has "$T/err" "$3" "... told: $3"
    one_line "$T/err" '... in one line'
    [ -z "$4" ] || has "$T/events" "\"rule\":\"$4\"" "... $4"
    if [ -e "$T/res/mesh.ply" ]; then not_ok '... nothing is left'; else ok '... nothing is left'; fi
}
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n' >"$T/bad.obj"
refused 'an index out of range' "$T/bad.obj" 'line 4: index 9' face-index-out-of-range
printf 'v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n' >"$T/bad.obj"
refused 'a vertex that is not finite' "$T/bad.obj" 'line 2' vertex-nan
: >"$T/bad.obj"
refused 'an empty file' "$T/bad.obj" 'no vertices' empty-result
printf 'ply\nformat ascii 1.0\nelement vertex 3000000000\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0\n' >"$T/bad.ply"
refused 'more vertices than bytes' "$T/bad.ply" '3000000000' file-truncated
mkfifo "$T/fifo.obj"
refused 'a FIFO does not hang' "$T/fifo.obj" 'no regular file' ''
refused 'no such file' "$T/none.off" 'none.off' ''
tap 65 'a border where none is wanted' run copy "$T/t.obj" --set check.require=closed
has "$T/err" '3 of 3 edges are a border' 'told'

# name, V, F, chi, border parts, non-manifold edges before; after cleaning V, F, chi, split vertices
census() {
    f=$1
    [ -f "$DATA/$f" ] || { skip "no $f"; return; }
    tap 0 "$f" run copy "$DATA/$f"
    got="$(number used) $(number faces) $(number euler) $(number borders) $(number non_manifold)"
    if [ "$got" = "$2" ]; then ok "... $2"; else not_ok "... $2" "$got"; fi
    tap 0 '... cleaned' run clean "$DATA/$f"
    got="$(number vertices) $(number faces) $(number euler) $(number split) $(number non_manifold)"
    if [ "$got" = "$3" ]; then ok "... $3"; else not_ok "... $3" "$got"; fi
}
if [ -n "$DATA" ]; then
    { head -n 3 "$DATA/meshes/rocker-arm.obj"; printf 'v 1 0.5'; } >"$T/cut.obj"
    head -c 40000 "$DATA/meshes-broken/cow.off" >"$T/cut.off"
    refused 'an OBJ that is cut' "$T/cut.obj" 'line' file-truncated
    refused 'an OFF that is cut' "$T/cut.off" 'line' file-truncated
    census meshes/stanford-bunny.obj '34834 69451 -3 5 0' '34834 69451 -3 0 0'
    census meshes/rocker-arm.obj '10044 20088 0 0 0' '10044 20088 0 0 0'
    census meshes/spot.obj '2930 5856 2 0 0' '2930 5856 2 0 0'
    census meshes/cow.obj '2903 5804 1 0 0' '2904 5804 2 0 0'
    census meshes-broken/3holes.off '3596 7200 -4 0 0' '3596 7200 -4 0 0'
    census meshes-broken/camelhead.off '11381 22704 1 1 0' '11381 22704 1 0 0'
    census meshes-broken/beetle.off '19887 38656 -9 11 0' '19887 38656 -9 0 0'
    census meshes-broken/cow.off '2762 5520 2 0 0' '2762 5518 1 0 0'
    census meshes-broken/truck.obj '2956 4770 -96 144 54' '3061 4718 -36 0 0'
    tap 0 'cow.off with equal vertices merged' run clean "$DATA/meshes-broken/cow.off" --set clean.non_manifold=false
    is non_manifold 1 'has an edge of more than two faces'
    is euler 2 'and keeps its characteristic'
    for f in learn0 capture0001 region_growing_tutorial room_scan1; do
        tap 0 "$f.pcd" run points "$DATA/pointclouds/$f.pcd"
        head -c 5000 "$DATA/pointclouds/$f.pcd" >"$T/cut.pcd"
        tap 65 '... cut' run points "$T/cut.pcd"
        one_line "$T/err" '... in one line'
    done
    tap 0 'a scene of splats is points too' run points "$DATA/splat-format/pc_short.ply"
else
    skip 'no data folder'
fi
finish

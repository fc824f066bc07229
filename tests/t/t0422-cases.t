#!/bin/sh
# The cases of kernels and formats that people met elsewhere, each built by its folder's own script and held against what it expects.
. "${abs_top_srcdir:?}/tests/lib.sh"
ulimit -c 0
CASES=${DATA:+$DATA/../cases}
[ -n "$DATA" ] && [ -d "$CASES/E01-pose-inf" ] || skip_all 'no folder of cases beside the data'
command -v gcc >/dev/null && command -v bash >/dev/null || skip_all 'the cases are built with bash and gcc'

built() { # NAME: its input is $T/NAME/in
    cp -r "$CASES/$1" "$T/$1" && chmod -R u+w "$T/$1" && bash "$T/$1/make.sh" >"$T/out" 2>&1
}
number() { sed -n "s/^  \"$1\": \([-0-9.e]*\),*\$/\1/p" "$T/res/mesh-check.json"; }
is() { # KEY VALUE 'name'
    got=$(number "$1")
    if [ "$got" = "$2" ]; then ok "$3"; else not_ok "$3" "$1 is '$got', wanted $2"; fi
}
run() { # PIPELINE IN [OPTION...]
    c=$1 i=$2; shift 2
    rm -rf "$T/res" "$T/events"
    recon-run --pipeline "$c" --dataset "$i" --out "$T/res" --events "$T/events" --device cpu "$@"
}
nothing() { if ls "$T/res" 2>/dev/null | grep -q 'ply\|obj'; then not_ok "$1"; else ok "$1"; fi; }
cat >"$T/check.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "check"; kernel = "mesh.check"; }, { name = "save"; kernel = "mesh.write"; params = { file = "m.obj"; }; } );
C
cat >"$T/smooth.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "check"; kernel = "mesh.check"; }, { name = "smooth"; kernel = "mesh.smooth"; },
          { name = "save"; kernel = "mesh.write"; params = { file = "m.obj"; }; } );
C
cat >"$T/repair.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "clean"; kernel = "mesh.clean"; params = { orient = "outward"; }; }, { name = "check"; kernel = "mesh.check"; } );
C
cat >"$T/frames.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "frames.read"; }, { name = "fuse"; kernel = "tsdf.fuse"; }, { name = "surface"; kernel = "mesh.marching_cubes"; },
          { name = "check"; kernel = "mesh.check"; }, { name = "save"; kernel = "mesh.write"; params = { file = "m.obj"; }; } );
C
cat >"$T/points.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "points.read"; }, { name = "save"; kernel = "points.write"; } );
C

built E01-pose-inf
tap 0 'E01: a pose of -inf among three frames' run "$T/frames.conf" "$T/E01-pose-inf/in" --set fuse.voxel=0.02
has "$T/err" 'frame-000001' '... is skipped by its name'
has "$T/events" '"rule":"pose-invalid"' '... by its rule'
[ "$(grep -c pose-invalid "$T/events")" = 1 ] && ok '... once: two frames are used' || not_ok '... once: two frames are used'
awk '$1 == "v" { n++; if (!($4 > 1.47 && $4 < 1.53)) bad = 1 } END { exit !(n > 20 && !bad) }' "$T/res/m.obj" && ok '... a plane at z = 1.5' || not_ok '... a plane at z = 1.5'
if grep -qi 'nan\|inf' "$T/res/m.obj"; then not_ok '... no NaN'; else ok '... no NaN'; fi

built E03-depth-8bit
tap 65 'E03: depth of 8 bits' run "$T/frames.conf" "$T/E03-depth-8bit/in"
has "$T/err" 'frame-000000.depth.png' '... the file is named'
has "$T/events" '"rule":"depth-8bit"' '... by its rule'
if grep -q '"type":"step".*tsdf.fuse' "$T/events"; then not_ok '... before any kernel ran'; else ok '... before any kernel ran'; fi
nothing '... no mesh is left'

built E05-volume-too-big
for f in params.txt params-2g.txt; do
    read -r _ x0 x1 y0 y1 z0 z1 _ v <"$T/E05-volume-too-big/in/$f"
    tap 65 "E05: $f" run "$T/frames.conf" "$T/E01-pose-inf/in" --set "fuse.bounds=$x0,$x1,$y0,$y1,$z0,$z1" --set "fuse.voxel=$v"
    case $f in params.txt) has "$T/err" '2565 x 4061 x 1821' '... refused with its numbers' ;; *) has "$T/err" '2050 x 2050 x 2050' '... refused with its numbers, not wrapped' ;; esac
    has "$T/events" '"rule":"volume-too-big"' '... by its rule'
    nothing '... no mesh is left'
done

for c in E07-ply-crlf-binary E09-ply-list-types E11-ply-double E13-obj-negative; do
    built $c
    tap 0 "$c" run "$T/check.conf" "$T/$c"/in/t.*
    is vertices 3 '... three vertices'
    is faces 1 '... one face'
    is area 0.5 '... of area one half'
    has "$T/res/m.obj" 'f 1 2 3' '... 0 1 2'
done

built E15-gs-ply-sh0
tap 0 'E15: Gaussians without f_rest are points' run "$T/points.conf" "$T/E15-gs-ply-sh0/in/g.ply"
tr -d '\000' <"$T/res/points.ply" | head -c 200 >"$T/head"
has "$T/head" 'element vertex 1' '... one of them'

built E17-unreferenced-vertex
tap 0 'E17: smoothing with a vertex in no face' run "$T/smooth.conf" "$T/E17-unreferenced-vertex/in/t.obj"
if grep -qi 'nan\|inf' "$T/res/m.obj"; then not_ok '... all coordinates are finite'; else ok '... all coordinates are finite'; fi
is vertices 5 '... five vertices'
is used 4 '... one of them is reported in no face'

built E19-inward-normals
tap 0 'E19: a mesh inside out' run "$T/check.conf" "$T/E19-inward-normals/in/t.obj"
is volume -0.166666666667 '... of volume -1/6'
has "$T/events" '"rule":"inward-normals"' '... is told'
tap 0 '... and mended' run "$T/repair.conf" "$T/E19-inward-normals/in/t.obj"
is volume 0.166666666667 '... to +1/6'

built E21-uv-out-of-range
tap 0 'E21: texture coordinates outside 0 to 1' run "$T/check.conf" "$T/E21-uv-out-of-range/in/t.obj"
has "$T/events" '"rule":"uv-out-of-range"' '... by their rule'
has "$T/err" ': 1 faces' '... one face'

built E23-empty-isosurface
tap 65 'E23: a volume without a crossing' run "$T/frames.conf" "$T/E23-empty-isosurface/in"
has "$T/events" '"rule":"empty-result"' '... by its rule'
nothing '... no empty mesh is passed on'
cat >"$T/void.conf" <<'C'
version = 1;
steps = ( { name = "scan"; kernel = "scene.render_rgbd"; params = { frames = 2; width = 64; height = 48; }; },
          { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.1; }; },
          { name = "surface"; kernel = "mesh.marching_cubes"; params = { iso = -5.0; }; }, { name = "save"; kernel = "mesh.write"; params = { file = "m.obj"; }; } );
C
rm -rf "$T/res" "$T/events"
tap 65 '... nor by marching cubes itself' recon-run --pipeline "$T/void.conf" --out "$T/res" --events "$T/events" --device cpu
has "$T/events" '"rule":"empty-result"' '... by its rule'
grep -q '"dataset"\|surface' "$T/err" && ok '... at that step' || not_ok '... at that step' "$(cat "$T/err")"
nothing '... no empty mesh is passed on'

built E25-obj-large
busy() { sed -n 's/.*"type":"step".*"name":"read".*"busy_ms":\([0-9]*\).*/\1/p' "$T/events" | head -n 1; }
tap 0 'E25: an OBJ of 160,000 vertices' run "$T/check.conf" "$T/E25-obj-large/in/grid.obj" --threads 1
one=$(busy)
if [ "${one:-99999}" -lt 1500 ]; then ok "... within about a second of one core"; else not_ok '... within about a second of one core' "$one ms"; fi
has "$T/err" 'mesh.read' '... the report has a line for loading'
sed 's/n=400/n=800/' "$T/E25-obj-large/make.sh" >"$T/E25-obj-large/make4.sh" && bash "$T/E25-obj-large/make4.sh"
tap 0 '... of four times the grid' run "$T/check.conf" "$T/E25-obj-large/in/grid.obj" --threads 1
four=$(busy)
if [ "${four:-99999}" -lt $((one * 8 + 200)) ]; then ok '... takes about four times as long'; else not_ok '... takes about four times as long' "$one and $four ms"; fi
finish

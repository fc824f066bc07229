#!/bin/sh
# Materials, textures, normals of corners, parts and polygons through pipelines: kept where faces stay, told where they do not.
. "${abs_top_srcdir:?}/tests/lib.sh"
ulimit -c 0

conf() { # NAME STEPS: read, the steps, write
    printf 'version = 1;\nsteps = ( { name = "read"; kernel = "mesh.read"; }, %s { name = "save"; kernel = "mesh.write"; params = { file = "mesh.obj"; }; } );\n' "$2" >"$T/$1.conf"
}
conf copy ''
conf move '{ name = "move"; kernel = "mesh.transform"; params = { from = "openni"; to = "opencv"; }; },'
conf smooth '{ name = "smooth"; kernel = "mesh.smooth"; },'
conf fill '{ name = "fill"; kernel = "mesh.fill_holes"; },'
conf simplify '{ name = "fewer"; kernel = "mesh.simplify"; params = { vertices = 4; }; },'
run() { # PIPELINE [OPTION...]: of the folder $T/scan
    c=$1; shift
    rm -rf "$T/res" "$T/events"
    recon-run --pipeline "$T/$c.conf" --dataset "$T/scan" --out "$T/res" --events "$T/events" --device cpu "$@"
}
same() { # FILE 'name': it is $T/want, comments aside
    grep -v '^#' "$T/res/$1" >"$T/got"
    if diff "$T/want" "$T/got" >"$T/diff"; then ok "$2"; else not_ok "$2" "$(cat "$T/diff")"; fi
}

mkdir -p "$T/scan/pics"
printf 'a picture' >"$T/scan/pics/grain 1.png"
printf 'secret' >"$T/secret.png"
cat >"$T/scan/box.mtl" <<'M'
# by hand
newmtl wood
Kd 0.5 0.25 0
map_Kd -s 2 2 2 pics/grain 1.png
newmtl glass
d 0.25
unknown 1 2 3
map_Ks ../secret.png
map_bump nowhere.png
M
cat >"$T/scan/mesh.obj" <<'O'
mtllib box.mtl
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
v 0.5 0.5 1
vt 0 0
vt 1 0
vt 1 1
vn 0 0 -1
vn 0 1 0
o base
usemtl wood
f 1/1/1 4/2/1 3/3/1 2/2/1
usemtl glass
g sides
f 1/1 2/2 5/3
f 2//2 3//2 5//2
f 3 4 5
f 4 1 5
O

tap 0 'an OBJ with materials' run copy
sed 's/box.mtl/mesh.mtl/' "$T/scan/mesh.obj" >"$T/want"
same mesh.obj '... comes out as it went in'
grep -v '^#' "$T/scan/box.mtl" | sed 's,pics/grain 1.png,mesh-textures/grain_1.png,' >"$T/want"
same mesh.mtl '... its library too'
if cmp "$T/scan/pics/grain 1.png" "$T/res/mesh-textures/grain_1.png"; then ok '... with the texture copied'; else not_ok '... with the texture copied'; fi
has "$T/err" "'nowhere.png' is not there" '... a missing one told'
has "$T/err" "'../secret.png' lies outside" '... and one outside the folder'
if grep -rq secret "$T/res/mesh-textures"; then not_ok '... which is not copied'; else ok '... which is not copied'; fi
if [ "$(grep -c '"rule":"texture-missing"' "$T/events")" = 2 ]; then ok '... by their rule'; else not_ok '... by their rule'; fi

tap 0 'through a reflection' run move
has "$T/res/mesh.obj" 'vn 0 -1 0' '... normals of corners turn'
has "$T/res/mesh.obj" 'f 1/1/1 2/2/1 3/3/1 4/2/1' '... and polygons, with what their corners have'
tap 0 'through smoothing' run smooth
has "$T/err" "'mesh.smooth' does not keep normals of corners" '... which does not keep normals of corners'
has "$T/res/mesh.obj" 'f 1/1 2/2 5/3' '... but texture coordinates'
has "$T/res/mesh.obj" 'usemtl glass' '... and materials'
# a square without its middle: two of each material around it, each corner of the hole has the texture coordinate of its place
mkdir "$T/ring"
cp "$T/scan/box.mtl" "$T/ring/"
cat >"$T/ring/mesh.obj" <<'O'
mtllib box.mtl
v 0 0 0
v 3 0 0
v 3 3 0
v 0 3 0
v 1 1 0
v 2 1 0
v 2 2 0
v 1 2 0
vt 0 0
vt 1 0
vt 1 1
vt 0 1
vt 0.25 0.25
vt 0.75 0.25
vt 0.75 0.75
vt 0.25 0.75
vn 0 0 1
o low
usemtl wood
f 1/1/1 2/2/1 6/6/1 5/5/1
f 2/2/1 3/3/1 7/7/1 6/6/1
o high
usemtl glass
f 3/3 4/4 8/8 7/7
f 4/4/1 1/1/1 5/5/1 8/8/1
O
sed 's/box.mtl/mesh.mtl/' "$T/ring/mesh.obj" >"$T/want"
printf 'o low\nusemtl wood\nf 4/4/1 3/3 1/1/1\nf 3/3 2/2/1 1/1/1\nf 7/7/1 8/8 6/6/1\nf 8/8 5/5/1 6/6/1\n' >"$T/more"
for device in cpu ref; do
    tap 0 "holes filled on $device" recon-run --pipeline "$T/fill.conf" --dataset "$T/ring" --out "$T/ring-$device" --device $device --set fill.max_hole_edges=4
    if grep -q 'does not keep' "$T/err"; then not_ok '... nothing is lost'; else ok '... nothing is lost'; fi
    grep -v '^#' "$T/ring-$device/mesh.obj" >"$T/got"
    if head -n 26 "$T/got" | diff "$T/want" - >"$T/diff"; then ok '... what was there stays'; else not_ok '... what was there stays' "$(cat "$T/diff")"; fi
    sed 1,26d "$T/got" | diff "$T/more" - >"$T/diff" && ok '... what comes is like it' || not_ok '... what comes is like it' "$(cat "$T/diff")"
done
tap 0 'through simplification' run simplify
has "$T/err" "'mesh.simplify' does not keep texture coordinates, normals of corners, polygons, names, materials" '... which keeps nothing of it, and says so once'
if [ -e "$T/res/mesh.mtl" ]; then not_ok '... no library'; else ok '... no library'; fi
tap 0 'geometry alone' run copy --set read.keep=geometry
if grep -q 'vt\|usemtl\|f . . . .' "$T/res/mesh.obj"; then not_ok '... has nothing else'; else ok '... has nothing else'; fi
if grep -q texture-missing "$T/events"; then not_ok '... and asks for no texture'; else ok '... and asks for no texture'; fi

tap 0 'as a GLB' run copy --set save.file=m.glb
has "$T/err" 'glTF has no place for' '... what has no place there is told'
mkdir "$T/two"
cp "$T/res/m.glb" "$T/two/mesh.glb"
tap 0 '... and from it' recon-run --pipeline "$T/copy.conf" --dataset "$T/two" --out "$T/res2" --device cpu --set save.file=mesh.glb
if cmp "$T/two/mesh.glb" "$T/res2/mesh.glb"; then ok '... the same bytes'; else not_ok '... the same bytes'; fi

# content FILE: what means something, one kind after the other
content() {
    for k in v vt vn f usemtl o g s; do
        tr -d '\r' <"$1" | awk -v k=$k '$1 == k { n = k == "vt" ? 3 : k == "v" || k == "vn" ? 4 : NF; for (i = 1; i <= n; i++) printf "%s ", $i; print "" }'
    done
}
# alike FILE FILE: the same words; of numbers behind v, vt and vn the same floats
alike() {
    [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] && paste "$1" "$2" | awk '{ n = NF / 2
        for (i = 1; i <= n; i++) { a = $i; b = $(n + i); d = a - b; d = d < 0 ? -d : d; m = a < 0 ? -a : a
            if (i > 1 && $1 ~ /^v/ ? d > 1e-7 * m + 1e-40 : a "" != b "") { print "# " $0; exit 1 } } }'
}
for f in suzanne spot teapot cow rocker-arm; do
    [ -n "$DATA" ] && [ -f "$DATA/meshes/$f.obj" ] || { skip "no $f.obj"; continue; }
    tap 0 "$f.obj" recon-run --pipeline "$T/copy.conf" --dataset "$DATA/meshes/$f.obj" --out "$T/$f" --device cpu
    content "$DATA/meshes/$f.obj" >"$T/a"
    content "$T/$f/mesh.obj" >"$T/b"
    if alike "$T/a" "$T/b"; then ok '... has the same content'; else not_ok '... has the same content'; fi
done

printf 'newmtl a\nKd 0.5 green\n' >"$T/scan/box.mtl"
tap 65 'a malformed statement' run copy
has "$T/err" "box.mtl' line 2: 'Kd' needs 1 finite number, or three; keep = geometry" '... is refused with its line'
one_line "$T/err" '... in one line'
if [ -e "$T/res/mesh.obj" ]; then not_ok '... nothing is left'; else ok '... nothing is left'; fi
tap 0 '... and the mesh read without' run copy --set read.keep=geometry
rm "$T/scan/box.mtl"; mkfifo "$T/scan/box.mtl"
tap 0 'a FIFO as library does not hang' run copy
finish

#!/bin/sh
# doc/troubleshooting.md by doing: each fault is made here, and what recon says of it stands in the page, word for word.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES RECON_RUN RECON_EVENTS_FD
page=$abs_top_srcdir/doc/troubleshooting.md
# Texts may be broken over lines in the page.
tr '\n' ' ' <"$page" | sed 's/  */ /g' >"$T/page"

# says TEXT 'name': it was printed, and the page has it, with this place and node under the page's names
says() {
    if cat "$T/out" "$T/err" | sed "s|$T|/data|g; s|$(uname -n)|gpu017|g" >"$T/said" && grep -qF -e "$1" "$T/said"; then ok "$2"
    else not_ok "$2" "wanted: $1" "$(cat "$T/said")"; fi
    if grep -qF -e "$1" "$T/page"; then ok "$2: in the page"; else not_ok "$2: in the page" "$1"; fi
}

# 1 the library path lacks the CUDA runtime
lib "$T/cuda-11.3/lib64/libcudart.so.11.0" libcudart.so.11.0 'int f(void){return 0;}'
program "$T/fuse" 'int f(void);int main(void){return f();}' "$T/cuda-11.3/lib64/libcudart.so.11.0"
printf 'CUDA_HOME=%s\n' "$T/cuda-11.3" >"$T/env"
tap 78 'row 1' recon-check --env-file "$T/env" "$T/fuse"
says "error: lib-not-found: libcudart.so.11.0: needed by '/data/fuse', found nowhere" 'row 1'
says "remedy: export LD_LIBRARY_PATH='/data/cuda-11.3/lib64'" 'row 1: remedy'

# 2 built against another PyTorch
lib "$T/torch-built/libc10.so" libc10.so 'int _ZNK3c106Device4nameEv(void){return 1;} int _ZN3c103oneEv(void){return 1;}'
lib "$T/torch/libc10.so" libc10.so 'int _ZN3c103oneEv(void){return 1;}'
program "$T/ext" 'int _ZNK3c106Device4nameEv(void);int main(void){return _ZNK3c106Device4nameEv();}' "$T/torch-built/libc10.so" -Wl,-z,now
printf 'LD_LIBRARY_PATH=%s\n' "$T/torch" >"$T/env"
tap 78 'row 2' recon-check --env-file "$T/env" "$T/ext"
says "needs 'c10::Device::name() const' (_ZNK3c106Device4nameEv), which nothing that is loaded offers" 'row 2'
says '[torch-abi]' 'row 2: hint'

# 3 an architecture above the toolkit
tap 78 'row 3' recon-check --toolkit 11.0 --arch 8.6
says 'error: toolkit-too-old: 11.0: CUDA 11.0 cannot compile for sm_86, which needs CUDA 11.1 or newer' 'row 3'

# 4 data on the CPU where a kernel of the device, or of the CPU, wants it: copied and timed
cuda=$(sed -n 's/^CUDA_ROOT = //p' "$abs_top_builddir/Makefile")
if [ -f "$cuda/include/cuda_runtime.h" ] && ! grep -q '^SAN_CFLAGS = .*-fsanitize' "$abs_top_builddir/Makefile"; then
    mkdir -m 755 "$T/kernels"
    sh "$abs_top_srcdir/tests/fakes/cuda/build.sh" "$abs_top_srcdir" "$abs_top_builddir" "$cuda" "$T/kernels" >"$T/out" 2>&1 || cat "$T/out"
    cp "$abs_top_builddir/lib/recon/cpu.so" "$T/kernels/"
    cat >"$T/devices.conf" <<'C'
version = 1;
steps = ( { name = "scene"; kernel = "scene.render_rgbd"; params = { frames = 1; width = 32; height = 24; }; },
          { name = "fuse"; kernel = "tsdf.fuse"; params = { voxel = 0.3; }; },
          { name = "surface"; kernel = "mesh.marching_cubes"; params = { min_weight = -1; }; },
          { name = "save"; kernel = "mesh.write"; } );
C
    tap 0 'row 4: a kernel of the CPU after one of the device' recon-run --kernels "$T/kernels" --device cuda --pipeline "$T/devices.conf" \
        --out "$T/o4" --events "$T/e4"
    if grep '"name":"surface".*"device":"cuda:0"' "$T/e4" >/dev/null &&
        grep '"name":"save".*"device":"cpu".*"copy_ms":0*\.*0*[1-9]' "$T/e4" >/dev/null; then ok 'row 4: the copy is put in and timed'
    else not_ok 'row 4: the copy is put in and timed' "$(grep '"step"' "$T/e4")"; fi
    if grep -qa '^element face' "$T/o4/mesh.ply"; then ok 'row 4: the mesh is there'; else not_ok 'row 4: the mesh is there'; fi
else skip 'row 4: the CUDA kernels are not built here'; fi

# 5 kernels against an older driver
fatbin "$T/f.s" '2 90'
lib "$T/cuda-12.4/lib64/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
program "$T/render" 'int f(void);int main(void){return f();}' "$T/f.s" "$T/cuda-12.4/lib64/libcudart.so.12" "-Wl,-rpath,$T/cuda-12.4/lib64"
tap 75 'row 5' recon-check --assume gpu=9.0 --assume driver.kernel_module=470.82.01 "$T/render"
says "driver 470.82.01 (CUDA 11.4) is older than 525.60.13, which CUDA 12.0 of 'libcudart.so.12' needs" 'row 5'
tap 75 'row 5, no code for the GPU' recon-check --assume gpu=8.6 --assume driver.kernel_module=580.65.06 "$T/render"
says "'render' has no code for a GPU of compute capability 8.6; it holds sm_90" 'row 5: the other cause'

# 7 texture coordinates
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1.7 0\nvt 0 1\nf 1/1 2/2 3/3\nf 1/1 4/1 2/2\nf 1/1 3/3 4/1\nf 2/2 4/1 3/3\n' >"$T/tet.obj"
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 0 -1 0\nf 1 2 3\nf 1 2 4\nf 1 2 5\n' >"$T/fan.obj"
cat >"$T/look.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "look"; kernel = "mesh.check"; } );
C
cat >"$T/fill.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "look"; kernel = "mesh.check"; params = { require = "edges"; }; },
          { name = "fill"; kernel = "mesh.fill_holes"; }, { name = "save"; kernel = "mesh.write"; } );
C
cat >"$T/only.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "fill"; kernel = "mesh.fill_holes"; },
          { name = "save"; kernel = "mesh.write"; } );
C
tap 0 'row 7' recon-run --device cpu --pipeline "$T/look.conf" --dataset "$T/tet.obj" --out "$T/o7" --events "$T/e7"
says "3 faces have texture coordinates outside 0 to 1" 'row 7'
has "$T/e7" '"rule":"uv-out-of-range"' 'row 7: in the record'
# 10 inside out
says 'the closed mesh has a volume of -0.166667: its faces look inward' 'row 10'
has "$T/e7" '"rule":"inward-normals"' 'row 10: in the record'

# 6 a target that is far too small
cat >"$T/simplify.conf" <<'C'
version = 1;
steps = ( { name = "read"; kernel = "mesh.read"; }, { name = "simplify"; kernel = "mesh.simplify"; params = { faces = 1; }; },
          { name = "save"; kernel = "mesh.write"; params = { file = "mesh.ply"; }; } );
C
tap 0 'row 6' recon-run --device cpu --pipeline "$T/simplify.conf" --dataset "$T/tet.obj" --out "$T/o6" --events "$T/e6"
says '4 faces and 4 vertices are left: no more can go without a change of borders or topology' 'row 6'
has "$T/e6" '"rule":"simplify-target-not-reached"' 'row 6: in the record'
if grep -qa '^element face [1-9]' "$T/o6/mesh.ply"; then ok 'row 6: faces are left'; else not_ok 'row 6: faces are left'; fi

# 8 a grid that is too fine
tap 65 'row 8' recon-run --device cpu --pipeline scene-to-mesh --out "$T/o8" --set scene.frames=2 --set scene.width=64 \
    --set scene.height=48 --set fuse.voxel=0.0005 --events "$T/e8"
says 'voxels need 7.3 TiB of host memory' 'row 8'
says 'take a larger voxel or smaller bounds' 'row 8: remedy'
has "$T/e8" '"rule":"volume-too-big"' 'row 8: in the record'

# 9 holes at non-manifold edges
tap 0 'row 9: it ends' timeout 60 recon-run --device cpu --pipeline "$T/only.conf" --dataset "$T/fan.obj" --out "$T/o9"
says '6 border edges at non-manifold places: mesh.clean helps' 'row 9'
tap 65 'row 9: refused where asked' recon-run --device cpu --pipeline "$T/fill.conf" --dataset "$T/fan.obj" --out "$T/o9b" --events "$T/e9"
says '1 edges have more than two faces, none is wanted' 'row 9: refused'
has "$T/e9" '"rule":"non-manifold"' 'row 9: in the record'

# 12 only in Slurm jobs
program "$T/app" 'int main(void){return 0;}'
CUDA_HOME=/usr/local tap 0 'row 12: a pin' recon-pin capture -o "$T/env.pin" "$T/app"
launch=$(command -v recon-launch)
env -i SLURM_JOB_ID=1 SLURM_STEP_ID=0 CUDA_HOME_OLD=x "$launch" --pin "$T/env.pin" -- "$T/app" >"$T/out" 2>"$T/err"
says 'but not in the environment of this Slurm step; restored from the pin' 'row 12'

# the page names no finding that does not exist
recon-check --list-rules --format jsonl | sed 's/.*"rule":"\([^"]*\)".*/\1/' >"$T/rules"
grep -o '^| .* |$' "$page" | grep -o '`[a-z0-9]*-[a-z0-9-]*`' | tr -d '`' | sort -u | while read -r r; do
    grep -qx "$r" "$T/rules" || grep -rqF "\"$r\"" "$abs_top_srcdir/lib" || echo "$r"
done >"$T/unknown"
if [ -s "$T/unknown" ]; then not_ok 'every finding of the page exists' "$(cat "$T/unknown")"
else ok 'every finding of the page exists'; fi
finish

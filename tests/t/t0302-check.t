#!/bin/sh
# recon-check on programs that fail in real life, each built here: the right rule, the right words, the right status.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT

# found RULE 'name': the only finding above a note is of this rule
found() {
    got=$(sed -n 's/^\(error\|warn\): \([a-z-]*\): .*/\2/p' "$T/out" | tr '\n' ' ')
    if [ "$got" = "$1 " ]; then ok "$2"; else not_ok "$2" "wanted $1, got $got" "$(cat "$T/out")"; fi
}

# with_path LD_LIBRARY_PATH COMMAND...: with $T/path.env holding it (recon-check under a sanitizer is not static)
with_path() { printf 'LD_LIBRARY_PATH=%s\n' "$1" >"$T/path.env"; shift; "$@"; }

# ---- healthy programs are silent
program "$T/plain" 'int main(void){return 0;}'
tap 0 'a healthy program' recon-check "$T/plain"
lacks "$T/out" 'error:' 'no error'
lacks "$T/out" 'warn:' 'no warning'
for p in /bin/ls /usr/bin/env "$abs_top_builddir/libexec/recon/recon-probe" /bin/sh; do
    tap 0 "healthy: $p" recon-check --format jsonl "$p"
    has "$T/out" '"status":"ok","errors":0,"warnings":0' "nothing is said of $p"
done
lib "$T/w/libw.so.1" libw.so.1 'int w(void){return 1;}'
program "$T/w/app" '__attribute__((weak)) int absent(void); int w(void); int main(void){return w() + (absent ? absent() : 0);}' \
    "$T/w/libw.so.1" '-Wl,-rpath,$ORIGIN'
tap 0 'a weak symbol that nobody has' recon-check "$T/w/app"

# ---- lib-not-found, its hints and where the file lies
lib "$T/dead/lib/libtsdf.so.2" libtsdf.so.2 'int f(void){return 42;}'
program "$T/dead/bin/app" 'int f(void);int main(void){return f()==42?0:3;}' "$T/dead/lib/libtsdf.so.2" -Wl,-rpath,/builds/ci-4711/out/lib
tap 78 'a run path into a build folder' recon-check "$T/dead/bin/app"
found lib-not-found 'lib-not-found'
has "$T/out" "needed by '$T/dead/bin/app'" 'who needs it'
has "$T/out" '/builds/ci-4711/out/lib (no such directory)' 'where it was looked for'
has "$T/out" "a file of that name is $T/dead/lib/libtsdf.so.2" 'where it lies'
has "$T/out" '[runpath-dead]' 'hint'
remedy=$(sed -n 's/^    remedy: //p' "$T/out")
( eval "$remedy"; exec "$T/dead/bin/app" )
if [ $? = 0 ]; then ok 'the remedy can be pasted and works'; else not_ok 'the remedy can be pasted and works' "$remedy"; fi

lib "$T/inherit/lib/libb.so.1" libb.so.1 'int b(void){return 1;}'
lib "$T/inherit/lib/liba.so.1" liba.so.1 'int b(void);int a(void){return b();}' "$T/inherit/lib/libb.so.1"
program "$T/inherit/bin/app" 'int a(void);int main(void){return a()-1;}' "$T/inherit/lib/liba.so.1" '-Wl,-rpath,$ORIGIN/../lib,--enable-new-dtags' \
    "-Wl,-rpath-link,$T/inherit/lib"
tap 78 'RUNPATH is not inherited' recon-check "$T/inherit/bin/app"
found lib-not-found 'lib-not-found'
has "$T/out" "/lib/liba.so.1', found nowhere" 'the library needs it, not the program'
has "$T/out" '[runpath-not-inherited]' 'hint'

lib "$T/perm/lib/libp.so.1" libp.so.1 'int p(void){return 0;}'
program "$T/perm/app" 'int p(void);int main(void){return p();}' "$T/perm/lib/libp.so.1" "-Wl,-rpath,$T/perm/lib"
chmod 0 "$T/perm/lib/libp.so.1"
if [ "$(id -u)" = 0 ]; then skip 'unreadable: root reads everything'
else tap 78 'an unreadable library' recon-check "$T/perm/app"; has "$T/out" '[unreadable]' 'hint'; fi

# ---- what stands where a library should be
lib "$T/zip/lib/libuv3d.so.28.6.3" libuv3d.so.28 'int f(void){return 42;}'
program "$T/zip/app" 'int f(void);int main(void){return f()==42?0:3;}' "$T/zip/lib/libuv3d.so.28.6.3"
printf 'libuv3d.so.28.6.3' >"$T/zip/lib/libuv3d.so.28"
with_path "$T/zip/lib" tap 75 'a symlink that became a text' recon-check --env-file "$T/path.env" "$T/zip/app"
found lib-corrupt 'lib-corrupt'
has "$T/out" '17 bytes of text' 'what it is'
remedy=$(sed -n 's/^    remedy: //p' "$T/out")
( eval "$remedy"; LD_LIBRARY_PATH=$T/zip/lib exec "$T/zip/app" )
if [ $? = 0 ]; then ok 'the remedy can be pasted and works'; else not_ok 'the remedy can be pasted and works' "$remedy"; fi
rm -f "$T/zip/lib/libuv3d.so.28"; : >"$T/zip/lib/libuv3d.so.28"
with_path "$T/zip/lib" tap 75 'an empty file' recon-check --env-file "$T/path.env" "$T/zip/app"
found lib-corrupt 'lib-corrupt'
rm -f "$T/zip/lib/libuv3d.so.28"; mkdir "$T/zip/lib/libuv3d.so.28"
with_path "$T/zip/lib" tap 75 'a folder' recon-check --env-file "$T/path.env" "$T/zip/app"
found lib-corrupt 'lib-corrupt'

# ---- versions
printf 'GLIBCXX_3.4.21 { global: recon_old; local: *; };\nGLIBCXX_3.4.30 { global: recon_new; } GLIBCXX_3.4.21;\n' >"$T/new.map"
printf 'GLIBCXX_3.4.21 { global: recon_old; local: *; };\n' >"$T/old.map"
lib "$T/cxx/new/libstdc++.so.6" libstdc++.so.6 'void recon_new(void){} void recon_old(void){}' -nostdlib "-Wl,--version-script,$T/new.map"
lib "$T/cxx/old/libstdc++.so.6" libstdc++.so.6 'void recon_new(void){} void recon_old(void){}' -nostdlib "-Wl,--version-script,$T/old.map"
program "$T/cxx/app" 'void recon_new(void);int main(void){recon_new();return 0;}' "$T/cxx/new/libstdc++.so.6"
with_path "$T/cxx/old:$T/cxx/new" tap 75 'an old libstdc++ first' recon-check --env-file "$T/path.env" "$T/cxx/app"
found symver-missing 'symver-missing'
has "$T/out" "'$T/cxx/app' needs GLIBCXX_3.4.30, and '$T/cxx/old/libstdc++.so.6' ends at GLIBCXX_3.4.21" 'who, what, how far'
has "$T/out" "'$T/cxx/new/libstdc++.so.6' has what is needed" 'and which one has it'
remedy=$(sed -n 's/^    remedy: //p' "$T/out")
( LD_LIBRARY_PATH=$T/cxx/old:$T/cxx/new; eval "$remedy"; exec "$T/cxx/app" )
if [ $? = 0 ]; then ok 'the remedy can be pasted and works'; else not_ok 'the remedy can be pasted and works' "$remedy"; fi
tap 75 'a node with an old glibc' recon-check --assume os.glibc=2.2 "$T/plain"
found glibc-too-old 'glibc-too-old, and symver-missing not as well'
lacks "$T/out" 'LD_LIBRARY_PATH' 'libc is never to be swapped'
tap 75 'the facts of an old node' recon-check --skip memlock-low --facts "$abs_top_srcdir/tests/fixtures/facts/centos7-k40.facts" \
    "$T/plain"
found glibc-too-old 'glibc-too-old'
has "$T/out" 'and k40-03 has 2.17' 'names the node'

# ---- GPU code
fatbin "$T/f.s" '2 80'
program "$T/gpu/sm80" 'int main(void){return 0;}' "$T/f.s"
for g in 8.0 8.6 8.9; do tap 0 "sm_80 on $g" recon-check --assume gpu=$g "$T/gpu/sm80"; lacks "$T/out" arch- "nothing is said"; done
for g in 7.5 9.0 10.0; do
    tap 75 "sm_80 on $g" recon-check --assume gpu=$g "$T/gpu/sm80"
    found arch-no-image 'arch-no-image'
    has "$T/out" "'sm80' has no code for a GPU of compute capability $g; it holds sm_80" 'names the file, the GPU and the images'
done
fatbin "$T/f.s" '1 50 99 0'
program "$T/gpu/ptx99" 'int main(void){return 0;}' "$T/f.s"
for d in 470.82.01 535.183.01 580.65.06; do
    tap 75 "PTX 99.0 on driver $d" recon-check --assume gpu=9.0 --assume driver.kernel_module=$d "$T/gpu/ptx99"
    found ptx-newer-than-driver 'ptx-newer-than-driver'
done
tap 0 'PTX 99.0 on an unknown driver' recon-check -v --assume gpu=9.0 "$T/gpu/ptx99"
has "$T/out" 'not-checked: ptx-newer-than-driver' 'is not checked'
fatbin "$T/f.s" '2 80;1 80 7 0'
program "$T/gpu/jit" 'int main(void){return 0;}' "$T/f.s"
tap 0 'PTX that is compiled' recon-check --assume gpu=9.0 --assume driver.kernel_module=580.65.06 "$T/gpu/jit"
found arch-jit-only 'arch-jit-only, a warning'
fatbin "$T/f.s" '2 90' '2 80'
program "$T/gpu/mixed" 'int main(void){return 0;}' "$T/f.s"
tap 75 'one unit of two has no code' recon-check --assume gpu=9.0 "$T/gpu/mixed"
has "$T/out" '[per-container]' 'hint'
lib "$T/gpu/libcublas.so.12" libcublas.so.12 'int f(void){return 0;}' "$T/f.s"
program "$T/gpu/blas" 'int f(void);int main(void){return f();}' "$T/gpu/libcublas.so.12" '-Wl,-rpath,$ORIGIN'
tap 0 'a library that chooses its code itself' recon-check --assume gpu=9.0 "$T/gpu/blas"
tap 0 'the images of a file' recon-check --images "$T/gpu/jit"
has "$T/out" 'sm_80' 'are listed'
tap 0 'as JSON' recon-check --format jsonl --images "$T/gpu/mixed"
has "$T/out" '{"v":1,"type":"images","containers":1,"sass":["sm_90"]' 'a line a set'
tap 0 'GPU code on a node without GPU' recon-check -v --assume gpu=none "$T/gpu/sm80"
has "$T/out" 'not-checked: arch-no-image' 'is not checked'

# ---- driver and runtime
lib "$T/rt/cuda/libcudart.so.10.2" libcudart.so.10.2 'int f(void){return 0;}'
program "$T/rt/app" 'int f(void);int main(void){return f();}' "$T/rt/cuda/libcudart.so.10.2" "-Wl,-rpath,$T/rt/cuda"
tap 75 'runtime 10.2 on driver 10.1' recon-check --assume driver.cuda=10.1 "$T/rt/app"
found driver-too-old 'driver-too-old'
has "$T/out" 'driver (CUDA 10.1) is older than 440.33, which CUDA 10.2 of' 'both, and the least driver'
has "$T/out" 'below CUDA 11 there is no minor-version compatibility' 'and why'
tap 0 'a newer driver' recon-check --assume driver.kernel_module=535.183.01 "$T/rt/app"
lib "$T/rt/cuda/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
program "$T/rt/app12" 'int f(void);int main(void){return f();}' "$T/rt/cuda/libcudart.so.12" "-Wl,-rpath,$T/rt/cuda"
tap 0 'runtime 12 on a driver of 12.2' recon-check --assume driver.cuda=12.2 "$T/rt/app12"
tap 75 'runtime 12 on a driver of 11.4' recon-check --assume driver.kernel_module=470.82.01 "$T/rt/app12"
found driver-too-old 'driver-too-old'

# ---- libraries of the driver
lib "$T/drv/libcuda.so.1" libcuda.so.1 'int cuInit(unsigned f){return (int)f;}'
program "$T/drv/app" 'int cuInit(unsigned);int main(void){return cuInit(0);}' "$T/drv/libcuda.so.1"
if ldconfig -p 2>/dev/null | grep -q libcuda.so.1; then skip 'this node has a driver'
else
    tap 75 'libcuda on a node without GPU' recon-check --assume gpu=none "$T/drv/app"
    has "$T/out" 'it comes with the NVIDIA driver' 'says whose it is'
fi
tap 0 'libcuda for a node with GPU, judged from here' recon-check --assume gpu=9.0 --assume driver.cuda=12.8 "$T/drv/app"

# ---- environment
mkdir -p "$T/opt/cuda-12.4/lib64" "$T/opt/cuda-12.8/lib64"
printf 'CUDA_HOME=%s\nLD_LIBRARY_PATH=%s\n' "$T/opt/cuda-11.8" "$T/opt/cuda-11.8/lib64" >"$T/job.env"
tap 0 'CUDA_HOME that is not there' recon-check --env-file "$T/job.env" "$T/plain"
found cuda-home-missing 'a warning without a pin'
has "$T/out" "toolkits there: $T/opt/cuda-12.4, $T/opt/cuda-12.8" 'those that are'
mkdir "$T/opt/cuda-11.8"
cp "$T/plain" "$T/pinned"
CUDA_HOME=$T/opt/cuda-11.8 tap 0 'a pin is taken' recon-pin capture -o "$T/env.pin" "$T/pinned"
CUDA_HOME=$T/opt/cuda-11.8 tap 0 'and passes where it was taken' recon-check --pin "$T/env.pin"
rmdir "$T/opt/cuda-11.8"
CUDA_HOME=$T/opt/cuda-11.8 tap 75 'and not where CUDA_HOME is gone' recon-check --pin "$T/env.pin"
found cuda-home-missing 'an error with a pin'
mkdir "$T/opt/cuda-11.8"
printf 'SLURM_JOB_ID=4242\nSLURM_STEP_ID=0\nSLURM_PROCID=0\nDATASET=/data/office\n' >"$T/step.env"
tap 78 'a bare Slurm step' recon-check --pin "$T/env.pin" --env-file "$T/step.env"
found env-not-exported 'env-not-exported, once'
has "$T/out" 'CUDA_HOME' 'names the variable'
has "$T/out" '--export=ALL' 'and the remedy'
env -i CUDA_HOME=/elsewhere PATH="$PATH" "$(command -v recon-check)" --pin "$T/env.pin" >"$T/out" 2>"$T/err"
has "$T/out" "env-drift: CUDA_HOME: is '/elsewhere' as received, pinned as '$T/opt/cuda-11.8'" 'env-drift'
rm "$T/pinned"
CUDA_HOME=$T/opt/cuda-11.8 tap 75 'a pinned program that is gone' recon-check --pin "$T/env.pin"
has "$T/out" "the pin names it as a program or module" 'is told'

mkdir -p "$T/cwd/in"; lib "$T/cwd/in/libgeo.so.1" libgeo.so.1 'int f(void){return 13;}'
lib "$T/cwd/good/libgeo.so.1" libgeo.so.1 'int f(void){return 42;}'
program "$T/cwd/app" 'int f(void);int main(void){return f();}' "$T/cwd/good/libgeo.so.1" '-Wl,-rpath,$ORIGIN/good'
( cd "$T/cwd/in" && with_path /opt/none: recon-check --env-file "$T/path.env" --libs ../app ) >"$T/out" 2>"$T/err"
has "$T/out" "libgeo.so.1 => $T/cwd/in/libgeo.so.1" 'an empty element is the working folder'
program "$T/pre" 'int main(void){return 0;}'
LD_PRELOAD=/opt/site/libgone.so recon-check "$T/pre" >"$T/out" 2>/dev/null; rc=$?
found preload-missing 'preload-missing'
if [ $rc = 0 ]; then ok 'and the program may run'; else not_ok 'and the program may run' "$rc"; fi

# ---- everything that was printed follows the schema
recon-check --format jsonl --libs "$T/dead/bin/app" "$T/gpu/mixed" >"$T/all.jsonl" 2>/dev/null
tap 0 'JSON lines follow the schema' validate findings "$T/all.jsonl"
finish

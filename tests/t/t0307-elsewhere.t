#!/bin/sh
# One pin against other nodes by their facts: an old glibc, another GPU, another driver. Nothing of this host goes into the
# verdict: the same findings come when the libraries of the system, the environment and the time are others.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/finds.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES
facts=$abs_top_srcdir/tests/fixtures/facts
fatbin "$T/f.s" '2 90;1 90 8 4'
lib "$T/cuda/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
program "$T/app" 'int f(void);int main(void){return f();}' "$T/f.s" "$T/cuda/libcudart.so.12" '-Wl,-rpath,$ORIGIN/cuda'
tap 0 'a pin' recon-pin capture -o "$T/env.pin" "$T/app"

tap 0 'an H200 node' recon-check --pin "$T/env.pin" --facts "$facts/h200.facts"
tap 75 'an old node' recon-check --skip open-files-low --skip memlock-low --pin "$T/env.pin" --facts "$facts/centos7-k40.facts"
found glibc-too-old driver-too-old arch-no-image
sed 's/compute_capability = "9.0"/compute_capability = "8.0"/' "$facts/h200.facts" >"$T/a100.facts"
tap 75 'another GPU' recon-check --pin "$T/env.pin" --facts "$T/a100.facts"
found arch-no-image
sed 's/580.159.04/470.82.01/g; s/cuda = "13.0"/cuda = "11.4"/' "$facts/h200.facts" >"$T/driver.facts"
tap 75 'another driver' recon-check --pin "$T/env.pin" --facts "$T/driver.facts"
found driver-too-old
sed 's/"GLIBC_2.3[4-9]", //g; s/glibc = "2.39"/glibc = "2.31"/' "$facts/h200.facts" >"$T/glibc.facts"
tap 75 'an older glibc' recon-check --pin "$T/env.pin" --facts "$T/glibc.facts"
found glibc-too-old

# facts of a real root with an older glibc (Debian 11, made by debootstrap; recon-check --root ROOT --save-facts)
tap 75 'Debian 11' recon-check --pin "$T/env.pin" --facts "$facts/debian11-root.facts"
found glibc-too-old
has "$T/out" 'GLIBC_2.34' 'by the version that it lacks'
program "$T/old" 'int main(void){return 0;}' -nostartfiles '-Wl,-e,main'
tap 0 'a program that asks for nothing new' recon-check --facts "$facts/debian11-root.facts" "$T/old"
lacks "$T/out" 'error:' 'runs there'

# a root made here: its own libraries count, links in it stay in it, nothing of this host is told
root=$T/root
mkdir -p "$root/usr/lib64" "$root/etc"; ln -s usr/lib64 "$root/lib64"
printf 'NAME="x"\nID=elder\nVERSION_ID="7"\n' >"$root/etc/os-release"
printf 'GLIBC_2.2.5 { global: *; };\nGLIBC_2.17 { } GLIBC_2.2.5;\n' >"$T/libc.map"
lib "$root/usr/lib64/libc-2.17.so" libc.so.6 'const char banner[] = "GNU C Library stable release version 2.17."; int f(void){return 0;}' "-Wl,--version-script,$T/libc.map" -nostdlib
ln -s /usr/lib64/libc-2.17.so "$root/usr/lib64/libc.so.6"
tap 0 'facts of a root' recon-check --root "$root" --save-facts "$T/root.facts"
has "$T/root.facts" 'os = { id = "elder"; version = "7"; glibc = "2.17";' 'system and glibc are its own'
has "$T/root.facts" '{ soname = "libc.so.6"; path = "/lib64/libc.so.6"; versions = [ "GLIBC_2.2.5", "GLIBC_2.17" ]; }' 'and its version nodes'
lacks "$T/root.facts" 'libstdc++' 'what it has not is not told'
for k in 'kernel = ' 'boot_id' 'cores = ' 'memlock' 'cache = ' "node = \"$(uname -n)\""; do lacks "$T/root.facts" "$k" "nothing of this host: $k"; done
tap 75 'a pin against them' recon-check --pin "$T/env.pin" --facts "$T/root.facts"
found glibc-too-old

# the system's libraries out of view: the same words
judge() { recon-check --format jsonl --pin "$T/env.pin" --facts "$1" 2>/dev/null | sed 's/,"ms":.*//'; }
judge "$facts/centos7-k40.facts" >"$T/here"
if unshare -rm true 2>/dev/null; then
    mkdir "$T/empty"
    # shellcheck disable=SC2016
    unshare -rm sh -c 'mount --bind "$1" /opt && mount -t tmpfs none /dev/shm -o size=1m && shift && exec "$@"' sh "$T/empty" \
        recon-check --format jsonl --pin "$T/env.pin" --facts "$facts/centos7-k40.facts" 2>/dev/null | sed 's/,"ms":.*//' >"$T/there"
    if [ -s "$T/there" ] && cmp -s "$T/here" "$T/there"; then ok 'other places, a full /dev/shm: the same findings'
    else not_ok 'other places, a full /dev/shm: the same findings' "$(diff "$T/here" "$T/there")"; fi
else skip 'no mount namespaces here'; fi
( ulimit -l 32; ulimit -n 128; judge "$facts/centos7-k40.facts" ) >"$T/there"
if cmp -s "$T/here" "$T/there"; then ok 'other limits: the same findings'; else not_ok 'other limits: the same findings' "$(diff "$T/here" "$T/there")"; fi
TMPDIR=/none judge "$facts/h200.facts" >"$T/there"
if grep -q '"status":"ok"' "$T/there"; then ok 'another TMPDIR: nothing is said'; else not_ok 'another TMPDIR: nothing is said' "$(cat "$T/there")"; fi

# a change of the node that has nothing to do with the program
sed 's|"/usr/local/cuda-13"|"/usr/local/cuda-13", "/usr/local/cuda-99"|; s/kernel = "[^"]*"/kernel = "6.99"/' "$facts/h200.facts" >"$T/new.facts"
tap 0 'a new toolkit and kernel' recon-check --pin "$T/env.pin" --facts "$T/new.facts"
lacks "$T/out" 'warn:' 'nothing is said'
finish

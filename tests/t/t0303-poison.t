#!/bin/sh
# recon-check, started directly, reports lib-corrupt and does not crash with garbage libraries first in LD_LIBRARY_PATH.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
check=$abs_top_builddir/bin/recon-check
if readelf -lW "$check" | grep -q INTERP; then skip_all 'recon-check is linked dynamically here (sanitizer)'; fi
mkdir "$T/bad"
for l in libelf.so.1 libz.so.1 libconfig.so.9 libjansson.so.4 libhwloc.so.15 libstdc++.so.6 libc.so.6 libm.so.6 libdl.so.2 \
    libxxhash.so.0 libpthread.so.0; do
    echo "no library at all" >"$T/bad/$l"
done
program "$T/app" 'int main(void){return 0;}'
# sh and env could not start with these: set by the program that has started already
LD_LIBRARY_PATH=$T/bad LD_PRELOAD=$T/bad/libz.so.1 "$check" -v "$T/app" >"$T/out" 2>"$T/err"; rc=$?
if [ $rc = 75 ]; then ok 'it ends with 75'; else not_ok 'it ends with 75' "$rc" "$(cat "$T/out" "$T/err")"; fi
has "$T/out" "error: lib-corrupt: $T/bad/libc.so.6" 'lib-corrupt for libc.so.6'
has "$T/out" '18 bytes of text' 'what it is'
lacks "$T/out" 'node-unknown' 'the probe ran all the same'
lib "$T/lib/libhwloc.so.15" libhwloc.so.15 'int f(void){return 0;}'
program "$T/topology" 'int f(void);int main(void){return f();}' "$T/lib/libhwloc.so.15"
LD_LIBRARY_PATH=$T/bad "$check" "$T/topology" >"$T/out" 2>"$T/err"; rc=$?
if [ $rc = 75 ]; then ok 'a program that needs hwloc'; else not_ok 'a program that needs hwloc' "$rc"; fi
has "$T/out" "lib-corrupt: $T/bad/libhwloc.so.15" 'lib-corrupt for libhwloc'
tap 0 'without them' "$check" "$T/app"

# corrupt in other ways
for how in 'head -c 100 /bin/ls' 'head -c 5000 /bin/ls' ':' 'printf \177ELF' 'cat /dev/zero | head -c 4096'; do
    rm -rf "$T/bad"; mkdir "$T/bad"; sh -c "$how" >"$T/bad/libc.so.6"
    LD_LIBRARY_PATH=$T/bad "$check" "$T/app" >"$T/out" 2>"$T/err"; rc=$?
    if [ $rc = 75 ] && grep -q lib-corrupt "$T/out"; then ok "libc.so.6 is '$how'"
    else not_ok "libc.so.6 is '$how'" "$rc" "$(cat "$T/out" "$T/err")"; fi
done
rm -rf "$T/bad"; mkdir "$T/bad"; mkfifo "$T/bad/libc.so.6"
echo "LD_LIBRARY_PATH=$T/bad" >"$T/env" # timeout itself could not start with it
tap 75 'libc.so.6 is a FIFO' timeout 20 "$check" --env-file "$T/env" "$T/app"
has "$T/out" 'not-a-regular-file' 'not-a-regular-file'
finish

#!/bin/sh
# recon-launch tells of damaged libraries instead of dying by them; the probe failing does not stop a program.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/launch.sh"
unset RECON_CHECK RECON_PIN SLURM_JOB_ID
if readelf -d "$abs_top_builddir/bin/recon-launch" 2>/dev/null | grep -q NEEDED; then
    skip_all 'recon-launch is linked dynamically (a sanitizer)'
fi
ok 'recon-launch needs no library'
garbage=$T/garbage
mkdir "$garbage"
for l in libelf.so.1 libz.so.1 libconfig.so.9 libjansson.so.4 libhwloc.so.15 libstdc++.so.6 libc.so.6; do
    head -c 4096 /dev/urandom >"$garbage/$l"
done
cat >"$T/main.cc" <<'C'
#include <string>
int main(int n, char **) { return std::to_string(n).size() == 1 ? 0 : 1; }
C
${CXX:-c++} -o "$T/prog" "$T/main.cc" || skip_all 'no C++ compiler'
pin "$T/p.pin" "$T/prog"
for l in "$garbage" "$garbage:/usr/lib"; do
    LD_LIBRARY_PATH=$l recon-launch --pin "$T/p.pin" -- "$T/prog" >"$T/out" 2>"$T/err"
    same "$?" 75 'refused, not crashed'
    has "$T/err" 'lib-corrupt' 'lib-corrupt'
    has "$T/err" "$garbage/libstdc++.so.6" 'names the file'
done
LD_LIBRARY_PATH=$garbage recon-launch --pin "$T/p.pin" --check-only --format jsonl >"$T/out" 2>"$T/err"
same "$?" 75 '--check-only too'
has "$T/out" '"rule":"lib-corrupt"' 'as JSON'
head -c 4096 /dev/urandom >"$T/preload.so"
# the program gets the damaged preload as well: ld.so only complains of it
LD_PRELOAD=$T/preload.so recon-launch --pin "$T/p.pin" -- "$T/prog" >"$T/out" 2>"$T/err"
st=$?
case $st in 0 | 75 | 78) ok "a damaged LD_PRELOAD: a verdict ($st)" ;; *) not_ok 'a damaged LD_PRELOAD' "status $st" "$(cat "$T/err")" ;; esac
has "$T/err" "$T/preload.so" 'that names it'
pin "$T/q.pin" "$T/prog" '{ name = "LD_LIBRARY_PATH"; how = "unset"; }' '{ name = "LD_PRELOAD"; how = "unset"; }'
LD_PRELOAD=$T/preload.so LD_LIBRARY_PATH=$garbage "$abs_top_builddir/bin/recon-launch" --pin "$T/q.pin" -- "$T/prog" >"$T/out" 2>"$T/err"
same "$?" 0 'a pin that unsets both lets it run' 

# fails open: a probe that is not there
mkdir -p "$T/copy/bin"
cp "$abs_top_builddir/bin/recon-launch" "$T/copy/bin"
LD_LIBRARY_PATH=$garbage "$T/copy/bin/recon-launch" -v --pin "$T/q.pin" -- "$T/prog" >"$T/out" 2>"$T/err"
same "$?" 0 'without recon-probe the program runs'
has "$T/err" 'not-checked' 'and what was not checked is noted'
finish

#!/bin/sh
# recon-pin bundle: the files of a pin in a folder of their own, that runs where they are not; whole or not at all.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD VIRTUAL_ENV CONDA_PREFIX
cd "$T" || exit 99

# a program below app/, a module that it opens by its place, libraries below app/ and elsewhere, one found by a link
mkdir -p app/bin app/plugins app/lib far "odd place"
echo 'int near_(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libnear.so.1 -xc - -o app/lib/libnear.so.1.2
ln -s libnear.so.1.2 app/lib/libnear.so.1
echo 'int far_(void) { return 2; }' | $CC -shared -fPIC -Wl,-soname,libfar.so.1 -xc - -o far/libfar.so.1
echo 'int odd(void) { return 4; }' | $CC -shared -fPIC -Wl,-soname,libodd.so.1 -xc - -o 'odd place/libodd.so.1'
echo 'int far_(void), odd(void); int plug(void) { return far_() + odd(); }' |
    $CC -shared -fPIC -xc - -xnone -o app/plugins/plug.so far/libfar.so.1 'odd place/libodd.so.1'
cat >m.c <<'P'
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int near_(void);
int main(int n, char **a)
{
    char at[4096] = "", path[5000]; void *d; int (*plug)(void);
    if (readlink("/proc/self/exe", at, sizeof at - 1) < 0) return 9;
    snprintf(path, sizeof path, "%s/../plugins/plug.so", dirname(at));
    d = dlopen(path, RTLD_NOW);
    if (!d) { puts(dlerror()); return 8; }
    plug = (int (*)(void))dlsym(d, "plug");
    printf("%d %s %s\n", near_() + plug(), getenv("SAYS") ? getenv("SAYS") : "-", n > 1 ? a[1] : "");
    return 0;
}
P
$CC m.c -o app/bin/prog app/lib/libnear.so.1 -Wl,-rpath,'$ORIGIN/../lib' -ldl
export LD_LIBRARY_PATH="$T/far:$T/odd place" SAYS="it's" PLACE="$T/far"
tap 0 'capture' recon-pin capture -o a.pin --env SAYS --env PLACE app/bin/prog app/plugins/plug.so
tap 0 'here it runs' app/bin/prog x
tap 0 'bundle' recon-pin bundle -o moved a.pin
has out 'moved: 5 files' 'the files are counted'
has out 'run it by moved/run' 'and how it is run'
has out 'requires   glibc' 'what the other machine must have'
has out 'libc.so.6 (system)' 'what is left to it'
has out 'variables left out: ' 'variables that name places of this machine'
for f in run environment env.pin files.txt tree/bin/prog tree/plugins/plug.so tree/lib/libnear.so.1 lib/libnear.so.1 lib/libfar.so.1 lib/libodd.so.1; do
    if [ -e "moved/$f" ]; then ok "holds $f"; else not_ok "holds $f"; fi
done
lacks moved/environment PLACE 'no place of this machine is in its environment'
has moved/files.txt "lib/libodd.so.1 $T/odd place/libodd.so.1" 'where each file came from'
if [ -z "$(find . -maxdepth 1 -name 'moved.*')" ]; then ok 'nothing is left beside it'; else not_ok 'nothing is left beside it' "$(ls)"; fi
tap 73 'never over what is there' recon-pin bundle -o moved a.pin
has err "'moved' is there already" 'is told'; one_line err 'one line'
tap 73 'nor over a file' recon-pin bundle -o a.pin a.pin
tap 64 'without a folder' recon-pin bundle a.pin

# elsewhere: none of the files is at its old place
mkdir away; mv moved 'away/some where'
mv app gone-app; mv far gone-far; mv 'odd place' gone-odd
unset LD_LIBRARY_PATH SAYS
tap 0 'it runs where its files are not' "away/some where/run" arg
has out "7 it's arg" 'with its module, its libraries, its variables and its arguments'
tap 0 'through a folder that is a link' sh -c 'ln -s "away/some where" link && cd / && "$0"/link/run arg' "$T"
has out "7 it's arg" 'the same'
tap 0 'a stray library of that machine' env LD_LIBRARY_PATH=/nowhere LD_PRELOAD= "away/some where/run" arg
here="$T/away/some where"
tap 0 'there it is pinned anew' sh -c 'here=$1; . "$here/environment"; recon-pin capture -o here.pin "$here/tree/bin/prog" "$here/tree/plugins/plug.so"' sh "$here"
has here.pin "path = \"$here/lib/libfar.so.1\"; " 'with the libraries of the bundle'
lacks here.pin gone- 'and no other'

# refused, and nothing is left
mv gone-app app; mv gone-far far; mv gone-odd 'odd place'
export LD_LIBRARY_PATH="$T/far:$T/odd place" SAYS="it's" PLACE="$T/far"
cp far/libfar.so.1 keep; printf x >>far/libfar.so.1
tap 75 'a file that is not what was pinned' recon-pin bundle -o b2 a.pin
has err "'$T/far/libfar.so.1' has digest" 'is named'; one_line err 'one line'
rm far/libfar.so.1
tap 74 'a file that is gone' recon-pin bundle -o b2 a.pin
has err "cannot open '$T/far/libfar.so.1'" 'is named'
cp keep far/libfar.so.1
if [ -z "$(find . -maxdepth 1 -name 'b2*')" ]; then ok 'nothing is left'; else not_ok 'nothing is left' "$(ls)"; fi
tap 73 'a folder that is not there' recon-pin bundle -o none/b2 a.pin
sed 's|soname = "libodd.so.1"|soname = "libfar.so.1"|' a.pin >same.pin
tap 65 'two files of one name' recon-pin bundle -o b3 same.pin
has err "would both be 'lib/libfar.so.1'" 'are told'
mkdir -p sp/site-packages/pkg; cp app/plugins/plug.so sp/site-packages/pkg/_C.so
tap 0 'a module of a package' recon-pin capture -o py.pin app/bin/prog sp/site-packages/pkg/_C.so
tap 64 'is more than its libraries' recon-pin bundle -o b4 py.pin
has err 'recon-pin export --format requirements' 'and the way is told'; one_line err 'one line'
finish

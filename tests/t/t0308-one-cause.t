#!/bin/sh
# One root cause is told once: what a lost library would have brought along is not told as changed.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
cd "$T" || exit 99
mkdir lib
echo 'int b(void) { return 0; }' >b.c
echo 'int b(void); int a(void) { return b(); }' >a.c
echo 'int a(void); int main(void) { return a(); }' >m.c
{ ${CC:-cc} -shared -fPIC -Wl,-soname,libb.so -o lib/libb.so b.c && ${CC:-cc} -shared -fPIC -Wl,-soname,liba.so -o lib/liba.so a.c lib/libb.so &&
    ${CC:-cc} -o m m.c lib/liba.so -Wl,-rpath-link,lib; } 2>/dev/null || skip_all 'no C compiler'
LD_LIBRARY_PATH=$T/lib tap 0 'a pin' recon-pin capture -o p.pin ./m
LD_LIBRARY_PATH=$T/lib tap 0 'nothing is missing' recon-launch --pin p.pin -- ./m
lacks err lib-changed 'nothing changed'
rm lib/liba.so
LD_LIBRARY_PATH=$T/lib tap 75 'the library is gone' recon-launch --pin p.pin -- ./m
has err 'lib-not-found: liba.so' 'it is told'
lacks err 'libb.so' 'what it needed is not told as well'
finish

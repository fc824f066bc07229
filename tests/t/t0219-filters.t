#!/bin/sh
# Filters (DT_FILTER, DT_AUXILIARY), trees of their own with caches that ldconfig -r made, and versions: as ld.so has them.
. "${abs_top_srcdir:?}/tests/lib.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
CC=${CC:-gcc}
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LD_BIND_NOW
cd "$T" || exit 99

# ---- filters
lib() { # OUT SONAME FLAGS...: its function tells the file's name
    o=$1 s=$2; shift 2
    echo "const char *$(basename "$s" .so)_name(void) { return \"$o\"; } int shared(void) { return $(echo "$o" | cksum | cut -c1-3); }" |
        $CC -shared -fPIC -nostdlib -Wl,-soname,"$s" -xc - -xnone -o "$o" "$@"
}
mkdir lib aux gone
lib lib/liblast.so liblast.so; lib aux/libaux.so libaux.so; lib aux/libfilt.so libfilt.so lib/liblast.so
lib lib/libl.so libl.so -Wl,-f,libaux.so -Wl,-F,libfilt.so '-Wl,-rpath,$ORIGIN/../aux:$ORIGIN' -Wl,--enable-new-dtags
echo 'int shared(void); int main(void) { return shared(); }' | $CC -xc - -xnone -o prog lib/libl.so '-Wl,-rpath,$ORIGIN/lib:$ORIGIN/aux' \
    -Wl,--disable-new-dtags -Wl,--allow-shlib-undefined
# listed NAME PROGRAM: the objects of both in their order; what is auxiliary and nowhere is told by the loader's list alone
listed() {
    LD_TRACE_LOADED_OBJECTS=1 "$2" 2>err </dev/null | sed -e 's/^\t//' -e '/vdso/d' -e 's/ (0x[0-9a-f]*)$//' -e 's/^.* => //' -e '/not found/d' >want
    "$dump" "$2" 2>&1 | awk -F'\t' 'NR > 1 && $2 != "-" { print $2 }' >got
    if [ -s want ] && cmp -s want got; then ok "$1"; else not_ok "$1" "$(diff want got)" "$(cat err)"; fi
}
listed 'a filter and an auxiliary library stand before the one that names them' ./prog
if grep -n . got | grep -q '1:.*libfilt\|1:.*libaux'; then ok 'the first of all'; else not_ok 'the first of all' "$(cat got)"; fi
tap 0 'recon-check of that program' recon-check --libs ./prog
has out "libfilt.so => " 'the filter is loaded'
mv aux/libaux.so gone/
listed 'an auxiliary library that is nowhere' ./prog
./prog; r=$?
tap 0 'is no error, nor one of the loader' recon-check ./prog
[ $r -lt 127 ] && ok 'the program runs' || not_ok 'the program runs' "$r"
echo 'no library' >aux/libaux.so
./prog; r=$?
tap 0 'nor is a damaged one' recon-check ./prog
[ $r -lt 127 ] && ok 'the program runs' || not_ok 'the program runs' "$r"
rm aux/libaux.so; mv aux/libfilt.so gone/
./prog 2>err; r=$?
has err 'libfilt.so: cannot open shared object file' 'ld.so dies without the filter'
tap 78 'which recon-check finds' recon-check ./prog
has out 'error: lib-not-found: libfilt.so' 'by its name'
has out "$T/lib/libl.so" 'and by the one that wants it'

# ---- LD_AUDIT
echo 'unsigned la_version(unsigned v) { return v; }' | $CC -shared -fPIC -xc - -o audit.so
echo 'int main(void) { return 0; }' | $CC -xc - -o plain
tap 0 'LD_AUDIT with a library' env LD_AUDIT="$T/audit.so" recon-check ./plain
has out "warn: audit-library: $T/audit.so" 'the verdict is told to be unsure'
tap 0 'LD_AUDIT that is gone' env LD_AUDIT=/opt/gone/audit.so recon-check ./plain
LD_AUDIT=/opt/gone/audit.so ./plain 2>err
has err 'cannot be loaded as audit interface' 'ld.so goes on without it'
has out 'warn: audit-library: /opt/gone/audit.so' 'so does recon-check'
tap 0 'LD_AUDIT is empty' env LD_AUDIT= recon-check ./plain
lacks out 'audit-library' 'nothing is said'
tap 0 'no LD_AUDIT' recon-check ./plain
lacks out 'audit-library' 'nothing is said'
$CC -xc - -o depaudit -Wl,--audit,"$T/audit.so" <<'C'
int main(void) { return 0; }
C
tap 0 'DT_AUDIT of a program' recon-check ./depaudit
has out "warn: audit-library: $T/audit.so" 'is told'
has out "$T/depaudit" 'with the object that asks'
tap 0 'a pin of it' recon-pin capture -o depaudit.pin ./depaudit
tap 0 'and judged by the pin' recon-check --pin depaudit.pin
has out "warn: audit-library: $T/audit.so" 'it is told, too'
tap 0 'the launcher' recon-launch --pin depaudit.pin -- ./depaudit
has err "warn: audit-library: $T/audit.so" 'tells it'

# ---- trees with a cache of their own
if [ "$(uname -m)" = x86_64 ] && unshare -rm true 2>/dev/null && command -v /sbin/ldconfig >/dev/null &&
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null; then
    mkdir trees
    unshare -rm python3 "$abs_top_srcdir/tests/t/loader_graphs.py" "$dump" "$T/trees" "${RECON_TEST_SEED:-1}" \
        "${RECON_TEST_GRAPHS:-200}" root >graphs 2>&1
    if grep -q differs graphs || ! grep -q '^graphs' graphs; then not_ok 'trees with caches' "$(head -c 6000 graphs)"
    else ok "trees with caches: $(tail -1 graphs)"; fi
    # shellcheck disable=SC2046
    set -- $(tail -1 graphs)
    if [ "${4:-0}" -gt 200 ] && [ "${10:-0}" -gt 50 ]; then ok 'with libraries from the cache'
    else not_ok 'with libraries from the cache' "$*"; fi
else
    skip 'trees with caches want x86-64, unshare -rm, ldconfig and python3'
fi
finish

#!/bin/sh
# Programs of musl: lib/elf names the files that `ld-musl --list` names. RECON_TEST_MUSL is the loader, if it is not in /lib.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
musl=${RECON_TEST_MUSL:-/lib/ld-musl-x86_64.so.1}
[ -x "$musl" ] || skip_all "wants musl's loader, $musl (Debian: package musl)"
[ "$(uname -m)" = x86_64 ] || skip_all 'wants x86-64'
mkdir -p "$T/p/lib" "$T/p/etc" && cp "$musl" "$T/p/lib/ld-musl-x86_64.so.1" && cd "$T" || exit 99
ld=$T/p/lib/ld-musl-x86_64.so.1
bare='-nostdlib -nostartfiles'
# one PATH OPTION...: libb in a folder; user PATH SONAME OPTION...: a library that needs it; prog PATH OPTION...
# shellcheck disable=SC2086
{
one() { lib "$1" libb.so.1 'int who(void) { return 1; }' $bare; }
user() { u=$1; shift; lib "$u" "$(basename "$u")" 'int who(void); int a(void) { return who(); }' $bare -Wl,--no-as-needed ru/libb.so.1 "$@"; }
prog() { p=$1; shift; program "$p" 'int who(void); void _start(void) { who(); for (;;) ; }' $bare "-Wl,-dynamic-linker,$ld" -Wl,--no-as-needed "$@"; }
}
for d in ru rp env def sub wd; do one $d/libb.so.1; done
old=-Wl,--disable-new-dtags new=-Wl,--enable-new-dtags

# same NAME PROGRAM [VAR=VALUE...]: name and path of each library but the loader
same() {
    what=$1 prog=$2; shift 2
    env "$@" "$ld" --list "$prog" >list 2>err </dev/null
    sed -n 's/^\t\(.*\) => \(.*\) (0x.*)$/\1 \2/p' list >a
    sed -n 's/^Error loading shared library \([^:]*\): .*/\1 -/p' err | sort -u >>a
    args=; for v; do args="$args -e $v"; done
    # shellcheck disable=SC2086
    "$dump" $args "$prog" >all 2>&1; awk -F'\t' 'NR > 1 && !($2 == "-" && $4 == "preload") { print $1, $2 }' all >b
    for f in a b; do sed -e "s, \([^/-]\), $PWD/\1," -e 's,/\./,/,g' -e "\, $ld\$,d" $f | sort >$f.s; done
    if cmp -s a.s b.s && [ -s a.s ]; then ok "$what: $(tr '\n' ' ' <a.s | sed "s,$T/,,g")"
    else not_ok "$what" "musl: $(cat list err)" "elf: $(cat all)"; fi
}
prog "$T/m1" ru/libb.so.1 $new "-Wl,-rpath,$T/ru"
same 'DT_RUNPATH' "$T/m1"
same 'LD_LIBRARY_PATH comes first' "$T/m1" "LD_LIBRARY_PATH=$T/env"
prog "$T/m2" ru/libb.so.1 $old "-Wl,-rpath,$T/rp"
same 'also before DT_RPATH' "$T/m2" "LD_LIBRARY_PATH=$T/env"
same 'DT_RPATH' "$T/m2"
user liba.so
prog "$T/m4" -Wl,-rpath-link,ru -Wl,--unresolved-symbols=ignore-all liba.so $new "-Wl,-rpath,$T:$T/rp"
same 'DT_RUNPATH of the program serves what its libraries need' "$T/m4"
user sub/liba.so $new '-Wl,-rpath,$ORIGIN/../ru'
prog "$T/m5" -Wl,--unresolved-symbols=ignore-all sub/liba.so $new "-Wl,-rpath,$T/sub:$T/rp"
same "a library's own comes before the program's" "$T/m5"
prog "$T/m6" ru/libb.so.1 $new '-Wl,-rpath,${ORIGIN}/rp'
same '${ORIGIN}' "$T/m6"
prog "$T/m7" ru/libb.so.1 $new "-Wl,-rpath,$T/rp:\$LIB"
same 'another token spoils the whole run path' "$T/m7"
prog "$T/m8" ru/libb.so.1
same 'found nowhere' "$T/m8"
printf '%s:/nowhere\n\n%s\n' "$T/none" "$T/def" >p/etc/ld-musl-x86_64.path
same 'etc/ld-musl-x86_64.path beside the loader' "$T/m8"
: >p/etc/ld-musl-x86_64.path
same 'an empty one: no directories' "$T/m8"
rm p/etc/ld-musl-x86_64.path
same 'a semicolon is no separator' "$T/m8" "LD_LIBRARY_PATH=$T/none;$T/env"
cd wd || exit 99
same 'an empty element is not the working directory' "$T/m8" LD_LIBRARY_PATH=:
same 'a point is' "$T/m8" LD_LIBRARY_PATH=.
cd ..
same '$ORIGIN in LD_LIBRARY_PATH is no token' "$T/m8" 'LD_LIBRARY_PATH=$ORIGIN/env'
mkdir -p hw/glibc-hwcaps/x86-64-v2; cp env/libb.so.1 hw/; cp env/libb.so.1 hw/glibc-hwcaps/x86-64-v2/
same 'no glibc-hwcaps' "$T/m8" "LD_LIBRARY_PATH=$T/hw"
cp env/libb.so.1 env/other.so
same 'a preload does not serve its SONAME' "$T/m1" "LD_PRELOAD=$T/env/other.so"
same 'but the same file is one object' "$T/m1" "LD_PRELOAD=$T/ru/libb.so.1"
same 'a preload is looked for without run paths' "$T/m1" LD_PRELOAD=libb.so.1
lib ru/libm.so.6 libm.so.6 'int m(void) { return 1; }' -nostdlib
prog "$T/m9" ru/libb.so.1 ru/libm.so.6 $new "-Wl,-rpath,$T/ru"
"$dump" "$T/m9" >v; has v "libm.so.6	$ld	loaded" 'libm is the loader itself'
same 'and no file of that name is opened' "$T/m9"
printf 'V1 { global: who; };\n' >v1.map; printf 'V2 { global: who; };\n' >v2.map
for v in 1 2; do lib v$v/libv.so libv.so 'int who(void) { return 1; }' -nostdlib -Wl,--version-script=v$v.map; done
prog "$T/m10" v2/libv.so
"$dump" -v -s -e "LD_LIBRARY_PATH=$T/v1" "$T/m10" >v 2>&1; lacks v 'missing' 'versions do not count'
lacks v 'undefined:' 'neither for symbols'
LD_LIBRARY_PATH=$T/v1 "$ld" --list "$T/m10" >list 2>&1; lacks list 'Error' 'musl says the same'
sed -i 's/who/wha/' v1.map; lib v1/libv.so libv.so 'int wha(void) { return 1; }' -nostdlib -Wl,--version-script=v1.map
"$dump" -s -e "LD_LIBRARY_PATH=$T/v1" "$T/m10" >v 2>&1; has v 'undefined: who' 'a symbol that is not there'
has v '	now' 'is missed at the start'
LD_LIBRARY_PATH=$T/v1 "$ld" --list "$T/m10" >list 2>&1; has list 'who: symbol not found' 'musl says the same'
tap 78 'recon-check tells a library that musl does not find' "$abs_top_builddir/bin/recon-check" "$T/m8"
has "$T/out" 'lib-not-found: libb.so.1' 'by name'
lacks "$T/out" "loader's cache" 'and speaks of no cache'
rm -r p/lib; "$dump" -v "$T/m1" >v 2>&1; has v "$ld	-	not-found" 'a loader that is not there'
finish

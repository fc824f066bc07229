#!/bin/sh
# The loader's rules, one by one: each case is run by ld.so and resolved by lib/elf, and both must name the same file.
. "${abs_top_srcdir:?}/tests/lib.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
CC=${CC:-gcc}
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'

cd "$T" || exit 99
mkdir -p rp ru env sub bad wd hw/glibc-hwcaps/x86-64-v2 hw/glibc-hwcaps/x86-64-v3
mk() { echo "const char *$3(void) { return \"$2\"; }" | $CC -shared -fPIC -nostdlib -Wl,-soname,"$4" -xc - -o "$1"; }
for d in rp ru env; do mk $d/libb.so.1 $d who libb.so.1; done
rpath=-Wl,--disable-new-dtags runpath=-Wl,--enable-new-dtags
# liba needs libb; OUT FLAGS...
mka() {
    o=$1; shift
    echo 'const char *who(void); const char *a(void) { return who(); }' |
        $CC -shared -fPIC -nostdlib -Wl,-soname,liba.so -xc - -xnone -o "$o" -Wl,--no-as-needed ru/libb.so.1 "$@"
}
mka liba.so
mka sub/liba.so $runpath -Wl,-rpath,'$ORIGIN/../ru'
echo 'const char *a(void); int main(void) { return a()[0]; }' >ma.c
echo 'const char *who(void); int main(void) { return who()[0]; }' >mb.c
pa() { o=$1; shift; $CC ma.c -o "$o" -Wl,-rpath-link,ru "$@"; }
pb() { o=$1; shift; $CC mb.c -o "$o" "$@" ru/libb.so.1; }

# same NAME PROGRAM [VAR=VALUE...]: where ld.so and lib/elf find libb and liba
same() {
    what=$1 prog=$2; shift 2
    env "$@" LD_TRACE_LOADED_OBJECTS=1 "$prog" 2>"$T/ld.err" </dev/null |
        sed -e '/lib[ab]\.so/b keep' -e '/other\.so/b keep' -e d -e ': keep' -e 's/^\t//' -e 's/ (0x[0-9a-f]*)$//' -e 's/^.* => //' >"$T/ld.out"
    args=; for v; do args="$args -e $v"; done
    # shellcheck disable=SC2086
    "$dump" $args "$prog" 2>&1 | awk -F'\t' 'NR > 1 && $1 ~ /lib[ab]\.so|other/ { print $2 == "-" ? "not found" : $2 }' >"$T/elf.out"
    sed "s,^\([^/n]\),$PWD/\1,;s,/\./,/,g" "$T/ld.out" | sort >"$T/a"; sed 's,/\./,/,g' "$T/elf.out" | sort >"$T/b"
    if [ -s "$T/a" ] && cmp -s "$T/a" "$T/b"; then ok "$what"
    else not_ok "$what" "ld.so: $(cat "$T/a" "$T/ld.err")" "elf: $(cat "$T/b")"; fi
}
# gives NAME TEXT PROGRAM [VAR=VALUE...]: the dump holds the text
gives() {
    what=$1 text=$2 prog=$3; shift 3
    args=; for v; do args="$args -e $v"; done
    # shellcheck disable=SC2086
    "$dump" -v $args "$prog" >"$T/v" 2>&1
    has "$T/v" "$text" "$what"
}

pa m1 liba.so $rpath -Wl,-rpath,'$ORIGIN:$ORIGIN/rp'
same 'DT_RPATH of the program serves what its libraries need' ./m1
same 'DT_RPATH comes before LD_LIBRARY_PATH' ./m1 LD_LIBRARY_PATH=$T/env
pa m2 liba.so $runpath -Wl,-rpath,'$ORIGIN:$ORIGIN/rp'
same 'DT_RUNPATH does not' ./m2
pb m4 $runpath -Wl,-rpath,'$ORIGIN/ru'
same 'DT_RUNPATH of the one that needs' ./m4
same 'LD_LIBRARY_PATH comes before DT_RUNPATH' ./m4 LD_LIBRARY_PATH=$T/env
pa m5 sub/liba.so $rpath -Wl,-rpath,'$ORIGIN/sub:$ORIGIN/rp'
same 'a library with DT_RUNPATH has no use for the program'"'"'s DT_RPATH' ./m5
same 'a preloaded library serves its SONAME' ./m4 LD_PRELOAD=$T/env/libb.so.1
cp env/libb.so.1 env/other.so
same 'so it does under another file name' ./m4 LD_PRELOAD=$T/env/other.so
same 'a preload that is not there is passed over' ./m4 LD_PRELOAD=/nowhere/libx.so
gives 'and is told' 'not-found	preload' ./m4 LD_PRELOAD=/nowhere/libx.so

cp ru/libb.so.1 hw/
for v in 2 3; do mk hw/glibc-hwcaps/x86-64-v$v/libb.so.1 v$v who libb.so.1; done
same 'glibc-hwcaps below LD_LIBRARY_PATH' ./m4 LD_LIBRARY_PATH=$T/hw
pb m7 $runpath -Wl,-rpath,'$ORIGIN/hw'
same 'glibc-hwcaps below DT_RUNPATH' ./m7
RECON_TEST_HWCAPS=x86-64-v2 "$dump" ./m7 >"$T/v"
has "$T/v" 'x86-64-v2/libb.so.1' 'the CPU of the node decides, not this one'

pb m8 $runpath -Wl,-rpath,'$ORIGIN/bad:$ORIGIN/ru'
cp ru/libb.so.1 bad/; printf '\001' | dd of=bad/libb.so.1 bs=1 seek=4 conv=notrunc 2>/dev/null
same 'a file of another class is passed over' ./m8
gives 'and is told' 'wrong class' ./m8
cp ru/libb.so.1 bad/; printf '\267\000' | dd of=bad/libb.so.1 bs=1 seek=18 conv=notrunc 2>/dev/null
same 'a file for another machine is passed over' ./m8
gives 'and is told' 'wrong machine' ./m8
rm bad/libb.so.1; ln -s /nonexist bad/libb.so.1
same 'a dangling symlink is passed over' ./m8
gives 'and is told' 'dangling symlink' ./m8

# where the loader dies, lib/elf names the file and goes on
dies() {
    "$2" >/dev/null 2>"$T/err" </dev/null && { not_ok "$1: ld.so dies"; return; }
    has "$T/err" 'error while loading shared libraries' "$1: ld.so dies"
    gives "$1: told" "corrupt: $3" "$2"
    has "$T/v" 'libc.so.6	/' "$1: the rest is resolved"
}
rm bad/libb.so.1; echo 'ru/libb.so.1' >bad/libb.so.1
dies 'text' ./m8 '13 bytes of text'
: >bad/libb.so.1; dies 'an empty file' ./m8 'an empty file'
rm bad/libb.so.1; mkdir bad/libb.so.1; dies 'a directory' ./m8 'a directory'
rmdir bad/libb.so.1; head -c 40 ru/libb.so.1 >bad/libb.so.1; dies 'a short file' ./m8 'a truncated ELF file of 40 bytes'
head -c 200000 /dev/zero >bad/libb.so.1; dies 'zeros' ./m8 'no ELF file'
cp m8 bad/libb.so.1; dies 'a program' ./m8 'a position-independent program'
rm bad/libb.so.1; echo libb.so.1.2 >bad/libb.so.1; cp ru/libb.so.1 bad/libb.so.1.2
gives 'text that names a file beside it: told' 'beside: libb.so.1.2' ./m8
rm bad/libb.so.1; mkfifo bad/libb.so.1
gives 'a FIFO (ld.so would wait for ever)' 'corrupt: a FIFO' ./m8
rm bad/libb.so.1; head -c $(($(wc -c <m8) / 3)) ru/libb.so.1 >bad/libb.so.1
gives 'a truncated library (ld.so would die of SIGBUS)' 'corrupt: a truncated ELF file' ./m8
rm -f bad/libb.so.1

pb m9
cd rp || exit 99
same 'an empty element is the working directory' ../m9 LD_LIBRARY_PATH=:
same 'so is one at the end' ../m9 LD_LIBRARY_PATH=/opt/none:
same 'the empty variable is no search' ../m9 LD_LIBRARY_PATH=
same 'a semicolon ends an element, a point is a place' ../m9 "LD_LIBRARY_PATH=/nonexistent;."
same '$ORIGIN in LD_LIBRARY_PATH is the program'"'"'s' ../m9 'LD_LIBRARY_PATH=$ORIGIN/env'
same 'a very long element does no harm' ../m9 "LD_LIBRARY_PATH=/$(head -c 5000 /dev/zero | tr '\0' a):$T/env"
cd ..
mkdir -p lib/x86_64-linux-gnu lib64 x86_64; for d in lib/x86_64-linux-gnu lib64 x86_64; do cp rp/libb.so.1 $d/; done
pb m11 $runpath -Wl,-rpath,'$ORIGIN/$LIB'
same '$LIB' ./m11
pb m12 $runpath -Wl,-rpath,'$ORIGIN/${PLATFORM}'
same '${PLATFORM}' ./m12
ln -s ../m4 sub/link
same '$ORIGIN of a program behind a symlink' ./sub/link

# versions
cat >v2.map <<'M'
V1 { global: f1; local: *; }; V2 { global: f2; } V1;
M
echo 'V1 { global: f1; f2; };' >v1.map
echo 'int f1(void) { return 1; } int f2(void) { return 2; }' >l.c
mkdir v2 v1 v0
for v in 2 1; do $CC -shared -fPIC -nostdlib l.c -Wl,-soname,libv.so.1 -Wl,--version-script=v$v.map -o v$v/libv.so.1; done
$CC -shared -fPIC -nostdlib l.c -Wl,-soname,libv.so.1 -o v0/libv.so.1
echo 'int f1(void), f2(void); int main(void) { return f1() + f2() - 3; }' | $CC -xc - -xnone -o mv v2/libv.so.1
gives 'a version that the library lacks' 'version V2 missing: ./mv wants it of libv.so.1' ./mv LD_LIBRARY_PATH=$T/v1
LD_LIBRARY_PATH=v1 ./mv 2>"$T/err"; has "$T/err" "version \`V2' not found" 'ld.so says the same'
for v in 2 0; do
    "$dump" -v -e LD_LIBRARY_PATH=$T/v$v ./mv >"$T/v"
    lacks "$T/v" 'missing' "v$v: no version is missing"
done
# the hash of V2 is 0x592: the loader compares it besides the name
at=$(od -v -An -tx1 -w1 mv | awk '{ s = s $1; if (length(s) > 12) s = substr(s, 3); if (s == "920500000000") { print NR - 6; exit } }')
cp mv mh; printf '\223' | dd of=mh bs=1 seek="${at:-0}" conv=notrunc 2>/dev/null
gives 'a version of another hash' 'version V2 missing: ./mh wants it of libv.so.1' ./mh LD_LIBRARY_PATH=$T/v2
LD_LIBRARY_PATH=v2 ./mh 2>"$T/err"; has "$T/err" "version \`V2' not found" 'ld.so says the same'

# what dlopen finds in the scope of a program
echo 'const char *who(void); const char *plug(void) { return who(); }' |
    $CC -shared -fPIC -nostdlib -xc - -xnone -o plug.so -Wl,--no-as-needed ru/libb.so.1
"$dump" -m ./plug.so ./m4 >"$T/v"
has "$T/v" "libb.so.1	$T/ru/libb.so.1	loaded" 'a module finds what the program has loaded'
pa m13 $rpath -Wl,-rpath,'$ORIGIN/env' -Wl,--no-as-needed liba.so
echo 'int main(void) { return 0; }' | $CC -xc - -o m14 $rpath -Wl,-rpath,'$ORIGIN/env'
"$dump" -m ./plug.so ./m14 >"$T/v"
has "$T/v" "libb.so.1	$T/env/libb.so.1	rpath" 'and else the DT_RPATH of the program serves it'

# scripts
printf '#!%s/m4 -x\n' "$T" >script; chmod +x script
"$dump" ./script >"$T/v"
has "$T/v" "libb.so.1	$T/ru/libb.so.1	runpath" 'the interpreter of a script is resolved'
finish

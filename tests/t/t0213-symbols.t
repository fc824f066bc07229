#!/bin/sh
# References that nothing answers: what ldd -r says of installed programs and libraries, and what recon-check makes of it.
. "${abs_top_srcdir:?}/tests/lib.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
CC=${CC:-gcc} CXX=${CXX:-g++}
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
cd "$T" || exit 99
unset LD_LIBRARY_PATH LD_PRELOAD LD_BIND_NOW

# ---- installed files: the same set as the loader's ----
undefined() { # of the loader's trace: NAME VERSION PATH
    sed -n -e 's/.*undefined symbol: \([^ ]*\), version \([^ ]*\)\t(\(.*\))$/\1 \2 \3/p' \
        -e 's/.*undefined symbol: \([^ ,]*\)\t(\(.*\))$/\1 - \2/p' | sort -u
}
loader=/lib64/ld-linux-x86-64.so.2
if [ -x $loader ]; then
    { ls /usr/bin/* | awk 'NR % 40 == 1'; find /usr/lib/x86_64-linux-gnu /usr/lib64 -name '*.so*' -type f 2>/dev/null | sort | awk 'NR % 30 == 1'
      command -v gdb python3.11 git perl; } >candidates
    n=0 seen=0 references=0; : >differ
    while read -r f && [ $seen -lt 60 ]; do
        f=$(readlink -f "$f")
        case $(head -c 20 "$f" 2>/dev/null | od -An -tx1 | tr -d ' \n') in 7f454c4602*3e00) ;; *) continue ;; esac
        LD_WARN=yes LD_BIND_NOW=yes LD_TRACE_LOADED_OBJECTS=1 $loader "$f" </dev/null >trace 2>&1 || continue
        undefined <trace >want
        "$dump" -s "$f" 2>count | awk -F'\t' 'sub(/^undefined: /, "", $1) { print $1, $2, $3 }' | sort -u >got
        seen=$((seen + 1)); references=$((references + $(cut -d' ' -f1 count)))
        cmp -s want got || { echo "$f"; diff want got | head -5; } >>differ
    done <candidates
    n=0
    if [ ! -s differ ] && [ $seen -ge 20 ] && [ $references -gt 2000 ]; then ok "as ldd -r: $seen objects, $references references"
    else not_ok 'as ldd -r' "$seen objects, $references references" "$(head -40 differ)"; fi
else
    skip 'wants ld-linux-x86-64.so.2'
fi

# ---- kinds ----
echo 'int data = 1; int f(void) { return 1; } int g(void) { return 2; }' | $CC -shared -fPIC -Wl,-soname,libs.so.1 -xc - -o libs.so.1
echo 'int f(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libs.so.1 -xc - -o less.so
mkdir less; mv less.so less/libs.so.1
printf 'int f(void), g(void);\n__attribute__((weak)) int w(void);\nint main(void) { return w ? w() : f() + g() - 3; }\n' >p.c
$CC -Wl,-z,lazy p.c -o lazy libs.so.1
$CC -Wl,-z,now p.c -o now libs.so.1
printf 'extern int data; int f(void); int *p = &data; int main(void) { return f() - *p; }\n' | $CC -xc - -xnone -o data libs.so.1
chk() { want=$1; shift; name=$1; shift; tap "$want" "$name" env "$@"; }
chk 0 'all there' LD_LIBRARY_PATH=$T recon-check --format jsonl ./lazy
lacks out symbol-missing 'nothing missing, a weak reference is none'
chk 0 'a function bound at its first call' LD_LIBRARY_PATH=$T/less recon-check --format jsonl ./lazy
has out '"rule":"symbol-missing","level":"warn"' 'is a warning'
has out '"hint":"lazy"' 'told as lazy'
chk 78 'the same bound at start' LD_LIBRARY_PATH=$T/less recon-check --format jsonl ./now
has out '"rule":"symbol-missing","level":"error"' 'is an error'
LD_LIBRARY_PATH=less ./now 2>err; has err 'undefined symbol: g' 'ld.so dies of it'
chk 78 'LD_BIND_NOW' LD_BIND_NOW=1 LD_LIBRARY_PATH=$T/less recon-check --format jsonl ./lazy
chk 78 'data' LD_LIBRARY_PATH=$T/less recon-check --format jsonl ./data
has out "'data'" 'is named'
printf 'LD_PRELOAD=%s\nLD_LIBRARY_PATH=%s\n' "$T/libs.so.1" "$T/less" >preload.env
tap 0 'a preloaded library answers' recon-check --env-file preload.env --format jsonl ./now
tap 0 'skipped when asked' env LD_LIBRARY_PATH="$T/less" recon-check --skip symbol-missing ./now
echo 'int Py_Thing(void); int m(void) { return Py_Thing(); }' | $CC -shared -fPIC -xc - -o ext.so
tap 0 'a library without its program' recon-check -v --format jsonl ./ext.so
has out '"rule":"symbol-missing","level":"note"' 'is a note only'

# SysV hash alone, and a version that is there without the symbol
echo 'int f(void) { return 1; } int g(void) { return 2; } int data;' | $CC -shared -fPIC -Wl,--hash-style=sysv -Wl,-soname,libs.so.1 -xc - -o libs.so.1
chk 0 'DT_HASH alone' LD_LIBRARY_PATH=$T recon-check ./now
mkdir new old; echo 'LT { global: *; };' >v.map
echo 'int a(void) { return 1; }' >o.c; echo 'int a(void) { return 1; } int status(void) { return 41; }' >n.c
for d in old new; do $CC -shared -fPIC -Wl,-soname,liblt.so.1 -Wl,--version-script,v.map -o $d/liblt.so.1 "$(echo $d | cut -c1).c"; done
echo 'int a(void), status(void); int main(void) { return a() + status(); }' | $CC -xc - -xnone -o ver new/liblt.so.1
chk 78 'the version is there, the symbol is not' LD_LIBRARY_PATH=$T/old:$T/new recon-check --format jsonl ./ver
has out "of version LT" 'version named'
has out "$T/new/liblt.so.1' has it" 'and who has it'

# without a version: the library that has its like
echo 'int ncclA(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libn.so.1 -xc - -o old/libn.so.1
echo 'int ncclA(void) { return 1; } int ncclB(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libn.so.1 -xc - -o new/libn.so.1
echo 'int ncclA(void), ncclB(void); int main(void) { return ncclA() + ncclB(); }' | $CC -Wl,-z,now -xc - -xnone -o plain new/libn.so.1
chk 78 'an older release' LD_LIBRARY_PATH=$T/old:$T/new recon-check --format jsonl ./plain
has out "$T/old/libn.so.1', which the loader takes by ld_library_path, has its like" 'is named'
has out "$T/new/libn.so.1' has it" 'and the newer one'

# versions, case by case: recon-check has an error where ld.so does not get to the end of the program
cat >v2.map <<'M'
V1 { global: f1; local: *; }; V2 { global: f2; } V1;
M
echo 'V1 { global: f1; f2; };' >v1.map
echo 'V1 { global: f1; local: *; }; V2 { } V1;' >v3.map
echo 'int f1(void) { return 1; } int f2(void) { return 2; }' >l.c
mkdir v0 v1 v2 v3
for v in 1 2; do $CC -shared -fPIC l.c -Wl,-soname,libw.so.1 -Wl,--version-script=v$v.map -o v$v/libw.so.1; done
echo 'int f1(void) { return 1; }' | $CC -shared -fPIC -xc - -Wl,-soname,libw.so.1 -Wl,--version-script=v3.map -o v3/libw.so.1
$CC -shared -fPIC -nostdlib l.c -Wl,-soname,libw.so.1 -o v0/libw.so.1
$CC -shared -fPIC -nostdlib l.c -Wl,-soname,libother.so -o libother.so
printf 'int f1(void), f2(void); int main(void) { return f1() + f2() - 3; }\n' >w.c
$CC -Wl,-z,lazy w.c -o w v2/libw.so.1
cat >weak.py <<'P'
import struct
d = bytearray(open('w', 'rb').read()) # VER_FLG_WEAK on every vernaux
off, n = struct.unpack_from('<Q', d, 40)[0], struct.unpack_from('<H', d, 60)[0]
for i in range(n):
    s = struct.unpack_from('<IIQQQQIIQQ', d, off + 64 * i)
    p = s[4]
    while s[1] == 0x6ffffffe:
        _, count, _, aux, after = struct.unpack_from('<HHIII', d, p)
        q = p + aux
        for _ in range(count):
            h, flags, o, name, more = struct.unpack_from('<IHHII', d, q)
            struct.pack_into('<H', d, q + 4, flags | 2)
            q += more
        if not after: break
        p += after
open('weak', 'wb').write(d)
P
python3 weak.py 2>/dev/null && chmod +x weak
echo '__attribute__((weak)) int nope(void); int main(void) { return nope ? 1 : 0; }' |
    $CC -xc - -o undefweak -Wl,-z,now -Wl,--unresolved-symbols=ignore-all -fPIE -pie
$CC -Wl,-z,lazy w.c -o relr v2/libw.so.1 -Wl,-z,pack-relative-relocs 2>/dev/null
agree() { # PROGRAM [VAR=VALUE...]: with everything bound at the start
    prog=$1; shift
    [ -x "$prog" ] || { skip "$prog was not made"; return; }
    env LD_BIND_NOW=1 "$@" ./"$prog" >ld.out 2>&1 </dev/null; a=$?
    env LD_BIND_NOW=1 "$@" recon-check ./"$prog" >rc.out 2>&1; b=$?
    if { [ $a = 0 ] && [ $b = 0 ]; } || { [ $a != 0 ] && [ $b != 0 ]; }; then ok "$prog $*: ld.so $a, recon-check $b"
    else not_ok "$prog $*" "ld.so $a: $(cat ld.out)" "recon-check $b: $(cat rc.out)"; fi
}
for v in 0 1 2 3; do agree w LD_LIBRARY_PATH="$T/v$v"; agree weak LD_LIBRARY_PATH="$T/v$v"; done
for v in 0 2 3; do agree w LD_LIBRARY_PATH="$T/v$v" LD_PRELOAD="$T/libother.so"; done
agree undefweak; agree relr LD_LIBRARY_PATH="$T/v2"
chk 78 'a library without versions where one is wanted' LD_BIND_NOW=1 LD_LIBRARY_PATH="$T/v0:$T/v2" recon-check --format jsonl ./w
has out '"hint":"unversioned"' 'is told'
has out "$T/v2/libw.so.1' has it" 'and the one that fits'

# the other C++ ABI
if printf '#include <string>\nint f(const std::string &s) { return (int)s.size(); }\n' >a.cc &&
    $CXX -D_GLIBCXX_USE_CXX11_ABI=0 -shared -fPIC -Wl,-soname,libio.so.1 -o libio.so.1 a.cc 2>/dev/null; then
    mkdir abi; $CXX -D_GLIBCXX_USE_CXX11_ABI=1 -shared -fPIC -Wl,-soname,libio.so.1 -o abi/libio.so.1 a.cc
    printf '#include <string>\nint f(const std::string &);\nint main() { return f("ab") - 2; }\n' | $CXX -xc++ - -xnone -o app abi/libio.so.1
    chk 78 'the other C++ ABI' LD_LIBRARY_PATH=$T recon-check --format jsonl ./app
    has out '"hint":"cxx11-abi"' 'hint'
    has out "$T/libio.so.1' has 'f(std::string const&)', built for the old C++ ABI" 'whose function, demangled'
    chk 0 'the right one' LD_LIBRARY_PATH=$T/abi recon-check ./app
else
    skip 'wants a C++ compiler'
fi
finish

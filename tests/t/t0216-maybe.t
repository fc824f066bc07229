#!/bin/sh
# Libraries that a program may open later: told by -v --libs, never judged.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
check=$abs_top_builddir/bin/recon-check

lib "$T/opt/libopt.so.2" libopt.so.2 'int opt(void) { return 1; }'
lib "$T/opt/libneed.so" libneed.so 'int need(void) { return 1; }'
cat >"$T/note.s" <<'S'
.section .note.dlopen,"a",@note
.balign 4
.long 4, 2f-1f, 0x407c0c0a
.asciz "FDO"
1: .asciz "[{\"feature\":\"codec\",\"description\":\"a \\\"fine\\\" one\",\"priority\":\"recommended\",\"soname\":[\"libnone.so.9\",\"libopt.so.2\"]},{\"soname\":[\"libnever.so.1\"]}]"
2: .balign 4
.section .note.GNU-stack,"",@progbits
S
text='const char *const names[] = { "libplug.so.1", "libopt.so.2", "libneed.so", "lib.so", "libx.so.", "libfmt%d.so", "libx.so.1 is missing", "libbare.so" };'
program "$T/noted" "$text int need(void); int main(int n, char **v) { (void)v; return !need() + !names[n]; }" "$T/note.s" \
    "$T/opt/libneed.so" "-Wl,-rpath,$T/opt"
program "$T/opens" "#include <dlfcn.h>
$text int need(void); int main(int n, char **v) { (void)v; return !need() + !dlopen(names[n], 1); }" "$T/opt/libneed.so" \
    "-Wl,-rpath,$T/opt"

tap 0 'a program with a note is judged as without it' "$check" --libs -v "$T/noted"
has "$T/out" "may dlopen libnone.so.9 or libopt.so.2 => $T/opt/libopt.so.2 (by noted; recommended for codec)" 'its alternatives, and the one that is there'
has "$T/out" 'may dlopen libnever.so.1 => not found (by noted)' 'one that is not there'
lacks "$T/out" 'libplug' 'names in its text count only where it imports dlopen'
tap 0 'a program that imports dlopen' "$check" --libs -v "$T/opens"
has "$T/out" "may dlopen libopt.so.2 => $T/opt/libopt.so.2 (by opens)" 'a name in its text, found by its DT_RUNPATH'
has "$T/out" 'may dlopen libplug.so.1 => not found (by opens)' 'found nowhere'
has "$T/out" 'may dlopen libbare.so => not found' 'without a number'
grep -c 'may dlopen' "$T/out" >"$T/count"
has "$T/count" 3 'and nothing else: what is needed, texts, formats'
lacks "$T/err" 'libplug' 'no finding speaks of them'
tap 0 'in JSON' "$check" --format jsonl --libs -v "$T/noted"
has "$T/out" '{"v":1,"type":"may-dlopen","names":["libnone.so.9","libopt.so.2"],"path":"'"$T/opt/libopt.so.2"'","by":"'"$T/noted"'","feature":"codec","priority":"recommended"}' 'with all that the note says'
has "$T/out" '"names":["libnever.so.1"],"path":null' 'and nothing where nothing is found'
mv "$T/out" "$T/may.jsonl"
tap 0 'as the schema has it' validate findings "$T/may.jsonl"
tap 0 'JSON without -v' "$check" --format jsonl --libs "$T/noted"
lacks "$T/out" 'may-dlopen' 'has them not'
tap 0 'without -v' "$check" --libs "$T/opens"
lacks "$T/out" 'may dlopen' 'they are not told'

# a damaged note and a note of another owner are passed over
sed 's/"\[{/"[{{/' "$T/note.s" >"$T/bad.s"
program "$T/bad" 'int main(void) { return 0; }' "$T/bad.s"
tap 0 'a damaged note' "$check" --libs -v "$T/bad"
lacks "$T/out" 'may dlopen' 'says nothing'
sed 's/"FDO"/"FOO"/' "$T/note.s" >"$T/foo.s"
program "$T/foo" 'int main(void) { return 0; }' "$T/foo.s"
tap 0 "another owner's note" "$check" --libs -v "$T/foo"
lacks "$T/out" 'may dlopen' 'says nothing'
finish

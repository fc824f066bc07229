#!/bin/sh
# A pin of a program that musl's loader loads: captured, verified, judged, launched; what changes on the node is seen as the loader sees
# it. RECON_TEST_MUSL is the loader, if it is not in /lib.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/finds.sh"
musl=${RECON_TEST_MUSL:-/lib/ld-musl-x86_64.so.1}
[ -x "$musl" ] || skip_all "wants musl's loader, $musl (Debian: package musl)"
[ "$(uname -m)" = x86_64 ] || skip_all 'wants x86-64'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT RECON_PIN RECON_CHECK VIRTUAL_ENV CONDA_PREFIX
mkdir -p "$T/p/lib" "$T/p/etc" && cp "$musl" "$T/p/lib/ld-musl-x86_64.so.1" && cd "$T" || exit 99
list=$T/p/etc/ld-musl-x86_64.path
# one FOLDER STATUS: libb.so.1, whose answer is the program's exit status; prog NAME OPTION...: the program
one() { lib "$1/libb.so.1" libb.so.1 "int who(void) { return $2; }" -nostdlib -nostartfiles; }
prog() {
    name=$1; shift
    program "$name" 'int who(void);
void start(void) { long r, s = who(); __asm__ volatile("syscall" : "=a"(r) : "a"(231L), "D"(s) : "rcx", "r11", "memory"); for (;;) ; }
__asm__(".globl _start\n_start: and $-16, %rsp\n call start\n");' -nostdlib -nostartfiles "-Wl,-dynamic-linker,$T/p/lib/ld-musl-x86_64.so.1" "$@"
}
one run 3; one env 4; one def 5; one alt 6
prog app run/libb.so.1 -Wl,-rpath,"$T/run"
tap 3 'the program by itself' ./app
tap 0 'capture' recon-pin capture -o app.pin ./app
has app.pin "loader = { path = \"$T/p/lib/ld-musl-x86_64.so.1\"" "has musl's loader"
has app.pin "path = \"$T/run/libb.so.1\"; needed_by = ( 0 ); why = \"runpath\"" 'the library'
lacks app.pin hwcaps 'and nothing of glibc'
lacks app.pin cache_size 'nor of its cache'
tap 0 'verify' recon-pin verify app.pin
tap 0 'recon-check with the pin' recon-check --pin app.pin
lacks out warn: 'no word'
tap 3 'the launcher' recon-launch --pin app.pin -- ./app
tap 4 'musl takes LD_LIBRARY_PATH first' env LD_LIBRARY_PATH="$T/env" ./app
tap 3 'the launcher restores what was pinned' env LD_LIBRARY_PATH="$T/env" recon-launch --pin app.pin -- ./app
found env-drift
tap 75 'verify tells it' env LD_LIBRARY_PATH="$T/env" recon-pin verify app.pin
tap 0 'a pin with LD_LIBRARY_PATH' env LD_LIBRARY_PATH="$T/env" recon-pin capture -o env.pin ./app
has env.pin "path = \"$T/env/libb.so.1\"; needed_by = ( 0 ); why = \"ld_library_path\"" 'has that one'
tap 4 'which the launcher gives it' recon-launch --pin env.pin -- ./app
one run 7
tap 7 'another build of the library' recon-launch --pin app.pin -- ./app
found lib-changed
rm run/libb.so.1
tap 75 'the library is gone' recon-launch --pin app.pin -- ./app
found lib-not-found
has err "at capture it was $T/run/libb.so.1" 'and where it was'

# to musl versions do not count, and all symbols are bound at the start: so it is where nothing is searched again
printf 'V1 { global: who; };\n' >v1.map; printf 'V2 { global: who; };\n' >v2.map
lib v1/libb.so.1 libb.so.1 'int who(void) { return 9; }' -nostdlib -nostartfiles -Wl,--version-script,v1.map
lib v2/libb.so.1 libb.so.1 'int who(void) { return 9; }' -nostdlib -nostartfiles -Wl,--version-script,v2.map
prog versions v1/libb.so.1 -Wl,-rpath,"$T/v2"
tap 9 'another version of the symbol: musl takes it' ./versions
tap 0 'capture' recon-pin capture -o versions.pin ./versions
tap 0 'recon-check' recon-check ./versions
tap 0 'and with the pin' recon-check --pin versions.pin
tap 9 'the launcher' recon-launch --pin versions.pin -- ./versions

# the list of folders
printf '%s\n' "$T/def" >"$list"
one run2 8; prog plain run2/libb.so.1
tap 5 'a library of the list' ./plain
tap 0 'capture' recon-pin capture -o plain.pin ./plain
has plain.pin "path = \"$T/def/libb.so.1\"; needed_by = ( 0 ); why = \"default\"" 'has it'
has plain.pin "cache_size = $(wc -c <"$list")" 'and the size of the list'
tap 0 'nothing changed' recon-pin verify plain.pin
tap 5 'the launcher' recon-launch --pin plain.pin -- ./plain
printf '%s\n' "$T/alt" "$T/def" >"$list"
tap 6 'a folder is put first: musl takes its library' ./plain
tap 75 'verify' recon-pin verify plain.pin
has out "$T/alt/libb.so.1" 'sees it'
tap 0 'recon-check' recon-check --libs --pin plain.pin
has out "libb.so.1 => $T/alt/libb.so.1" 'too'
tap 6 'a library of the system is none that a pin holds to' recon-launch --pin plain.pin -- ./plain
rm "$list"
tap 75 'no list: the library is found nowhere' recon-launch --pin plain.pin -- ./plain
found lib-not-found
finish

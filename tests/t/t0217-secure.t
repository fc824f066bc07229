#!/bin/sh
# Set-uid programs: each is run, and lib/elf must name the library that answered. Wants root, or a second group.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump check=$abs_top_builddir/bin/recon-check
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
group=$(id -G | tr ' ' '\n' | grep -vx "$(id -g)" | head -n 1)
[ "$(id -u)" = 0 ] || [ -n "$group" ] || skip_all 'wants root or a second group, to make set-uid or set-gid programs'
chmod 755 "$T"
# privileged FILE...: gives it to another user or group and sets the bit
privileged() {
    if [ "$(id -u)" = 0 ]; then chown 65534 "$@" && chmod u+s "$@"; else chgrp "$group" "$@" && chmod g+s "$@"; fi
}
cd "$T" || exit 99
for d in ru env deep/ru; do lib $d/libb.so.1 libb.so.1 "const char *who(void) { return \"$T/$d/libb.so.1\"; }"; done
main='#include <stdio.h>
const char *who(void); int main(void) { return puts(who()) < 0; }'
program plain "$main" ru/libb.so.1 "-Wl,-rpath,$T/ru"
cp plain bits; privileged bits
LD_LIBRARY_PATH=$T/env ./bits >out 2>/dev/null
[ "$(cat out)" = "$T/ru/libb.so.1" ] || skip_all 'set-uid programs do not gain anything here (nosuid or no_new_privs)'

# same NAME PROGRAM [VAR=VALUE...]: which libb answered
same() {
    what=$1 prog=$2; shift 2
    env "$@" "$prog" >out 2>err </dev/null || echo - >out
    args=; for v; do args="$args -e $v"; done
    # shellcheck disable=SC2086
    "$dump" $args "$prog" 2>&1 | awk -F'\t' '$1 == "libb.so.1" { print $2 }' | sed 's,/deep/\.\.,,' >elf
    sed 's,/deep/\.\.,,' out | cmp -s - elf && ok "$what: $(cat elf)" || not_ok "$what" "run: $(cat out err)" "elf: $(cat elf)"
}
same 'LD_LIBRARY_PATH serves a plain program' ./plain "LD_LIBRARY_PATH=$T/env"
same 'and not one that is set-uid' ./bits "LD_LIBRARY_PATH=$T/env"
same 'nor does LD_PRELOAD' ./bits "LD_PRELOAD=$T/env/libb.so.1"
program origin "$main" ru/libb.so.1 '-Wl,-rpath,$ORIGIN/ru'
same '$ORIGIN serves a plain program' ./origin
privileged origin
same 'and not one that is set-uid, outside the default directories' ./origin
program inner "$main" ru/libb.so.1 "-Wl,-rpath,$T/\$ORIGIN:$T/env"
privileged inner
same '$ORIGIN that is not first' ./inner
program token "$main" ru/libb.so.1 "-Wl,-rpath,$T/\$LIB:$T/ru"
for d in lib/x86_64-linux-gnu lib64; do lib $d/libb.so.1 libb.so.1 "const char *who(void) { return \"$T/$d/libb.so.1\"; }"; done
privileged token
same '$LIB is expanded' ./token
lib deep/liba.so liba.so 'const char *who(void); const char *a(void) { return who(); }' -Wl,--no-as-needed ru/libb.so.1 '-Wl,-rpath,$ORIGIN/ru'
program through '#include <stdio.h>
const char *a(void); int main(void) { return puts(a()) < 0; }' deep/liba.so "-Wl,-rpath,$T/deep" "-Wl,-rpath-link,$T/ru"
privileged through
same "a library's \$ORIGIN counts" ./through "LD_LIBRARY_PATH=$T/env"

program lost "$main" ru/libb.so.1
privileged lost
LD_LIBRARY_PATH=$T/env tap 78 'a set-uid program that rests on LD_LIBRARY_PATH' "$check" ./lost
has "$T/out" 'secure-mode' 'the finding has the hint'
has "$T/out" 'the loader ignores LD_LIBRARY_PATH' 'and the cause'
has "$T/out" '/etc/ld.so.conf.d' 'and a remedy that helps'
chmod ug-s lost
LD_LIBRARY_PATH=$T/env tap 0 'without the bit it is fine' "$check" ./lost
finish

#!/bin/sh
# A hundred random graphs of libraries (RPATH, RUNPATH, $ORIGIN, hwcaps, odd LD_LIBRARY_PATH, symlinks, damaged files):
# lib/elf finds what ld.so finds, in the same order.
. "${abs_top_srcdir:?}/tests/lib.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'
[ "$(uname -m)" = x86_64 ] && [ -x /lib64/ld-linux-x86-64.so.2 ] || skip_all 'wants ld-linux-x86-64.so.2'
python3 -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null || skip_all 'wants python3'
/lib64/ld-linux-x86-64.so.2 --list-diagnostics >/dev/null 2>&1 || skip_all 'glibc before 2.33'

python3 "$abs_top_srcdir/tests/t/loader_graphs.py" "$dump" "$T" "${RECON_TEST_SEED:-1}" "${RECON_TEST_GRAPHS:-100}" \
    >"$T/graphs" 2>&1
if grep -q differs "$T/graphs" || ! grep -q '^graphs' "$T/graphs"; then
    not_ok 'as ld.so resolves them' "$(head -c 6000 "$T/graphs")"
else
    ok "as ld.so resolves them: $(tail -1 "$T/graphs")"
fi
# the generator makes what it is meant to make
set -- $(tail -1 "$T/graphs")
if [ "${4:-0}" -gt 200 ] && [ "${6:-0}" -ge 3 ] && [ "${8:-0}" -gt 50 ]; then ok 'graphs hold all kinds'
else not_ok 'graphs hold all kinds' "$*"; fi
finish

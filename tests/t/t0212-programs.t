#!/bin/sh
# Installed programs: the closure is what ld.so lists, in the same order.
. "${abs_top_srcdir:?}/tests/lib.sh"
dump=$abs_top_builddir/lib/elf/test/elf-dump
[ -x "$dump" ] || skip_all 'elf-dump is not built (make check builds it)'

# the loader names itself by its path, whatever name it was asked by
loader_list() {
    LD_TRACE_LOADED_OBJECTS=1 "$1" 2>/dev/null </dev/null | sed -n -e 's/^\t//' -e '/vdso/d' -e 's/ (0x[0-9a-f]*)$//' \
        -e 's/^\(.*\) => /\1\t/p' -e '/\t/!s/.*/&\t&/p'
}
elf_list() {
    "$dump" "$1" | tail -n +2 | cut -f1,2 | awk -F'\t' -v OFS='\t' '$2 ~ /\/ld(-linux|64)[^\/]*$/ { $1 = $2 } { print }'
}
for p in bash git gdb python3 perl gcc "$(gcc -print-prog-name=cc1 2>/dev/null)" sbatch recon-run "$abs_top_builddir/libexec/recon/recon-probe"; do
    f=$(command -v "$p") || { skip "$p is not here"; continue; }
    case $p in
    python3) f=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || { skip 'python3 does not run'; continue; } ;;
    esac
    case $(head -c 4 "$f" | od -An -c | tr -d ' \n') in 177ELF) ;; *) skip "$p is no ELF program"; continue ;; esac
    loader_list "$f" >"$T/want"
    elf_list "$f" >"$T/got"
    if [ -s "$T/want" ] && cmp -s "$T/want" "$T/got"; then ok "$p: $(wc -l <"$T/got") objects"
    elif [ ! -s "$T/want" ] && [ ! -s "$T/got" ]; then ok "$p is static"
    else not_ok "$p" "$(diff "$T/want" "$T/got" | head -20)"; fi
done
finish

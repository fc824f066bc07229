#!/bin/sh
# Every header of the sources stands in a list of the build, so that the tarball holds it; every module exports one symbol;
# the kernel interface is installed.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$abs_top_srcdir" || exit 99
lists=$(find lib bin tests -name '*.am' -exec cat {} +)
missing=
for h in $(find lib bin tests -name '*.h' -o -name '*.cuh'); do
    case $h in tests/fakes/cuda/*) continue ;; esac
    case $lists in *"/$(basename "$h")"*) ;; *) missing="$missing $h" ;; esac
done
if [ -z "$missing" ]; then ok 'every header is listed'; else not_ok 'every header is listed' "not in any list:$missing"; fi
if command -v nm >/dev/null; then
    for so in "$abs_top_builddir"/lib/recon/*.so "$abs_top_builddir"/lib/recon/sched/*.so; do
        got=$(nm -D --defined-only "$so" | sed 's/.* //' | tr '\n' ' ')
        case $so in */sched/*) want='recon_backend ' ;; *) want='recon_module ' ;; esac
        if [ "$got" = "$want" ]; then ok "${so##*/} exports one symbol"; else not_ok "${so##*/} exports one symbol" "$got"; fi
    done
else
    skip 'no nm here'
fi
finish

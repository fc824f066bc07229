#!/bin/sh
# Every header and scenario stands in a list of the build, so that it is built, run, and in the tarball; every module exports one symbol;
# the kernel interface is installed.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$abs_top_srcdir" || exit 99
lists=$(find lib bin tests -name '*.am' -exec cat {} +)
listed() { # listed 'name' FILE...
    what=$1 missing=; shift
    for f; do
        case $lists in *"/$(basename "$f")"*) ;; *) missing="$missing $f" ;; esac
    done
    if [ -z "$missing" ]; then ok "$what"; else not_ok "$what" "not in any list:$missing"; fi
}
# shellcheck disable=SC2046  # names without blanks
listed 'every header is listed' $(find lib bin tests \( -name '*.h' -o -name '*.cuh' \) ! -path 'tests/fakes/cuda/*')
listed 'every scenario is listed' tests/t/*.t
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

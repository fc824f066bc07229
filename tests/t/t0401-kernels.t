#!/bin/sh
# The kernel modules by themselves: tables as generated, modules that export one name, real frames against the oracle.
. "${abs_top_srcdir:?}/tests/lib.sh"
B=${abs_top_builddir:?}

"$B/lib/kernels/test/mc_gen" >"$T/mc_tables.h"
if cmp -s "$T/mc_tables.h" "$abs_top_srcdir/lib/kernels/mc_tables.h"; then ok 'mc_tables.h is what test/mc_gen.c makes'
else not_ok 'mc_tables.h is what test/mc_gen.c makes' "$(diff "$T/mc_tables.h" "$abs_top_srcdir/lib/kernels/mc_tables.h" | head)"; fi

for m in cpu ref; do
    names=$(nm -D --defined-only "$B/lib/recon/$m.so" | awk '$2 ~ /[A-Z]/ && $3 !~ /^(_init|_fini|__asan|__odr|__ubsan|__gcov|__start_|__stop_)/ { print $3 }' | sort | tr '\n' ' ')
    if [ "$names" = 'recon_module ' ]; then ok "$m.so exports recon_module and nothing else"
    else not_ok "$m.so exports recon_module and nothing else" "$names"; fi
done

k=$DATA/rgbd-kitchen
if [ -n "$DATA" ] && [ -d "$k" ]; then
    tap 0 'real frames: at least 99.95 % of the oracle'"'"'s voxels, the others rounding ties' \
        "$B/lib/kernels/test/oracle" cpu "$k" "$k/tsdf_ref_4cm.npz" 0.04 -2.8 3.8 -1.92 1.08 0.92 3.88
    sed 's/^/# /' "$T/out"
else
    skip 'real frames against the oracle: no data folder'
fi
finish

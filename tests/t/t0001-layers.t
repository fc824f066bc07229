#!/bin/sh
# A module includes only what DESIGN's table (doc/architecture.md) lets it, and third-party headers stay in .c files.
. "${abs_top_srcdir:?}/tests/lib.sh"

allowed() {
    case $1 in
    base) echo ;; conf) echo base ;; elf) echo base ;; data) echo base ;; record) echo base ;;
    node) echo base conf ;; kernels) echo base data record ;; pin) echo base elf node conf ;;
    pipe) echo base kernels data record conf ;; job) echo base conf record pin ;;
    check) echo base job pin node record conf elf ;; sched) echo base job node record ;; report) echo base record ;;
    esac
}
for m in base conf elf data record node kernels pin pipe job check sched report; do
    bad=
    for inc in $(find "$abs_top_srcdir/lib/$m" -name '*.[ch]' -o -name '*.cu' | xargs sed -n \
        's/^#include "\([a-z]*\)\/.*/\1/p' | sort -u); do
        [ -d "$abs_top_srcdir/lib/$inc" ] || continue
        case " $(allowed $m) $m " in *" $inc "*) ;; *) bad="$bad $inc" ;; esac
    done
    if [ -z "$bad" ]; then ok "lib/$m includes only its layers"; else not_ok "lib/$m includes only its layers" "also:$bad"; fi
done

third='libconfig.h|libelf.h|gelf.h|hwloc.h|jansson.h|spng.h|turbojpeg.h|zlib.h|xxhash.h|slurm/|nvml|cuda_runtime'
bad=$(find "$abs_top_srcdir/lib" "$abs_top_srcdir/bin" -name '*.h' ! -name '*_priv.h' ! -name '*.cuh' \
    -exec grep -lE "^#include <($third)" {} +)
if [ -z "$bad" ]; then ok 'no face header includes a third-party header'; else not_ok 'third-party headers' "$bad"; fi
finish

#!/bin/sh
# recon-run where files cannot be written: a full disk, a file system that is read-only. Needs root for its mounts.
. "${abs_top_srcdir:?}/tests/lib.sh"
K=$abs_top_builddir/lib/pipe/test/kernels
[ -f "$K/cpu.so" ] || skip_all "the fake modules are not built: make check"
[ "$(id -u)" = 0 ] || skip_all 'mounts need root'
unshare -m true 2>/dev/null || skip_all 'unshare -m is not allowed here'
cd "$T" || exit 99
cat >p.conf <<'P'
version = 1;
steps = ( { name = "make"; kernel = "fake.points"; }, { name = "sum"; kernel = "fake.sum"; } );
P
mkdir m
inside() { unshare -m sh -c "mount -t tmpfs -o $1 none '$T/m' && $2"; }
RUN="recon-run --kernels '$K' --pipeline '$T/p.conf' --device cpu"
inside size=64k true || skip_all 'a tmpfs cannot be mounted here'
tap 74 'a full disk' inside size=64k "dd if=/dev/zero of='$T/m/fill' bs=4k >/dev/null 2>&1; mkdir '$T/m/out'; $RUN --out '$T/m/out'"
one_line err "one line"
tap 0 'and nothing is left' inside size=64k "mkdir '$T/m/out'; dd if=/dev/zero of='$T/m/fill' bs=4k >/dev/null 2>&1;
    $RUN --out '$T/m/out'; test -z \"\$(ls -A '$T/m/out')\""
tap 73 'a read-only file system' inside size=64k,ro "$RUN --out '$T/m/out'"
finish

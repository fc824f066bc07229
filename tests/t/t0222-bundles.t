#!/bin/sh
# HIP bundles, plain and compressed; GPU code in static libraries; damaged ones.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
python3 -c 'import zlib' 2>/dev/null || skip_all 'wants python3'
cd "$T" || exit 99
cat >make.py <<'P'
import struct, sys, zlib
ids = ['host-x86_64-unknown-linux', 'hipv4-amdgcn-amd-amdhsa--gfx906', 'hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-']
head, at = b'', 4096
for i in ids:
    size = 0 if i.startswith('host') else 5000
    head += struct.pack('<QQQ', at, size, len(i)) + i.encode()
    at += (size + 4095) & ~4095
plain = (b'__CLANG_OFFLOAD_BUNDLE__' + struct.pack('<Q', len(ids)) + head).ljust(at, b'\1')
open('plain.hipfb', 'wb').write(plain)
for version in 1, 2, 3:
    z = zlib.compress(plain)
    wide = '<Q' if version == 3 else '<I'
    body = struct.pack(wide, len(plain)) + struct.pack('<Q', 7) + z
    if version > 1: body = struct.pack(wide, 8 + struct.calcsize(wide) + len(body)) + body
    open('v%d.hipfb' % version, 'wb').write(b'CCOB' + struct.pack('<HH', version, 0) + body)
open('two.hipfb', 'wb').write(plain + open('v3.hipfb', 'rb').read())
open('zstd.in', 'wb').write(plain)
def entry(kind, arch): return struct.pack('<HHIQIIHHIIIQQQ', kind, 0x101, 64, 8, 0, 0, 8, 1, arch, 0, 0, 0x11, 0, 0) + b'\0' * 8
body = entry(2, 90) + entry(1, 80)
open('one.fatbin', 'wb').write(struct.pack('<IHHQ', 0xBA55ED50, 1, 16, len(body)) + body)
# damage: sizes and lengths that lie
for i, (off, value) in enumerate([(24, 1 << 62), (32, 1 << 63), (48, 1 << 60), (40, (1 << 64) - 1)]):
    b = bytearray(plain); struct.pack_into('<Q', b, off, value); open('bad%d.hipfb' % i, 'wb').write(b)
open('cut.hipfb', 'wb').write(plain[:60])
open('badz.hipfb', 'wb').write(b'CCOB' + struct.pack('<HHQQQ', 3, 0, 1 << 60, 1 << 60, 7) + b'\x78\x9c' + b'\xff' * 100)
P
python3 make.py
elf() { printf '.section %s,"a"\n.balign 4096\n.incbin "%s"\n' "$1" "$2" | $CC -shared -nostdlib -xassembler - -o "$3"; }
for f in plain v1 v2 v3; do
    tap 0 "a bundle by itself: $f" recon-check --images $f.hipfb
    has out 'gfx906 gfx90a:xnack-' 'its targets'
done
elf .hip_fatbin plain.hipfb libhip.so
tap 0 'a library with HIP code' recon-check --format jsonl --images libhip.so
has out '"sass":["gfx906","gfx90a:xnack-"]' 'targets'; has out '"what":"HIP"' 'told as HIP'
for g in gfx906 gfx90a; do tap 0 "judged for $g" recon-check --assume gpu=$g ./libhip.so; lacks out 'error:' 'no error'; done
tap 75 'judged for a GPU that it has no code for' recon-check --assume gpu=gfx1030 ./libhip.so
has out "'libhip.so' has no code for AMD GPU gfx1030; it holds gfx906 gfx90a:xnack-" 'told'
has out 'add --offload-arch=gfx1030' 'with the option'
# in a pin: what is recorded is judged where nothing is read again
printf '.section .hip_fatbin,"a"\n.balign 4096\n.incbin "plain.hipfb"\n.section .note.GNU-stack,"",@progbits\n' >hip.s
echo 'int main(void) { return 0; }' | $CC -xc - -xassembler hip.s -o hipapp || exit 99
tap 0 'a pin of a program with HIP code' recon-pin capture -o hip.pin ./hipapp
has hip.pin 'hip = [ "gfx906", "gfx90a:xnack-" ]' 'has its targets'
tap 0 'show' recon-pin show hip.pin
has out 'hipapp: HIP gfx906 gfx90a:xnack-' 'tells them'
tap 0 'a GPU that it has code for' recon-check --pin hip.pin --assume gpu=gfx906
tap 75 'one that it has none for' recon-check --pin hip.pin --assume gpu=gfx1030
has out "'hipapp' has no code for AMD GPU gfx1030; it holds gfx906 gfx90a:xnack-" 'is told'
sed 's/"gfx906", "gfx90a:xnack-"/"gfx1030"/' hip.pin >other.pin
tap 0 'by the pin alone' recon-check --pin other.pin --assume gpu=gfx1030
tap 75 'whatever the file holds' recon-check --pin other.pin --assume gpu=gfx906
tap 1 'a difference' recon-pin diff hip.pin other.pin
has out 'HIP gfx1030' 'is told by diff'
elf .hip_fatbin two.hipfb libtwo.so
tap 0 'two bundles' recon-check --format jsonl --images libtwo.so
has out '"containers":2' 'are counted'
if command -v zstd >zs && zstd -q zstd.in -o zstd.out 2>/dev/null; then
    python3 -c "
import struct; z = open('zstd.out', 'rb').read()
open('z.hipfb', 'wb').write(b'CCOB' + struct.pack('<HHQQQ', 3, 1, 32 + len(z), 28672, 7) + z)"
    tap 0 'compressed with zstd' recon-check --images z.hipfb
    if grep -q 'not read' out; then skip 'built without zstd'; else has out gfx906 'is read'; fi
else
    skip 'wants zstd'
fi
for f in bad0 bad1 bad2 bad3 cut badz; do
    timeout 10 recon-check --images $f.hipfb >out 2>&1; got=$?
    if [ $got -lt 124 ]; then ok "damaged: $f"; else not_ok "damaged: $f" "status $got"; fi
done

# static libraries
printf '.section .nv_fatbin,"a"\n.balign 8\n.incbin "one.fatbin"\n' | $CC -c -xassembler - -o one.o
printf '.section __nv_relfatbin,"a"\n.balign 8\n.incbin "one.fatbin"\n' | $CC -c -xassembler - -o rel.o
echo 'int f(void) { return 1; }' | $CC -c -xc - -o a_member_with_a_very_long_name.o
ar rcs libx.a a_member_with_a_very_long_name.o one.o rel.o one.o
tap 0 'a static library' recon-check -v --format jsonl --images libx.a
has out '{"v":1,"type":"images","containers":0,"sass":["sm_90"],"ptx":["compute_80"],"lto":[],"ptx_isa":"1.8","toolkit":"11.8","what":""}' 'container'
has out '"what":"relocatable"' 'relocatable code'
ar rcs none.a a_member_with_a_very_long_name.o
tap 0 'one without' recon-check --images none.a
has err 'no GPU code' 'is told'
head -c 300 libx.a >cut.a
tap 0 'a truncated one' recon-check --images cut.a
mkfifo fifo
tap 65 'a FIFO is not waited for' timeout 5 recon-check --images fifo
finish

#!/bin/sh
# Clang's offload binaries (.llvm.offloading): both versions, damaged ones, what clang itself makes, OpenMP's code against GPUs.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
python3 -c '' 2>/dev/null || skip_all 'wants python3'
unset LD_LIBRARY_PATH LD_PRELOAD OMP_TARGET_OFFLOAD
cd "$T" || exit 99
cat >make.py <<'P'
import struct
OBJECT, IR, CUBIN, FATBIN, PTX, SPIRV = range(1, 7)
OPENMP, CUDA, HIP19, HIP, SYCL = 1, 2, 3, 4, 8
def pack(version, *images):
    """images: (kind, producer, {texts}, bytes[, flags]); version 1 has one image."""
    width = 16 if version == 1 else 24
    entries = b''; texts = b''; at = 32 + 40 * len(images); strings = b''; data = b''
    maps = sum(width * len(i[2]) for i in images)
    base = at + maps
    for i in images:
        for k, v in i[2].items():
            ko = base + len(texts); texts += k.encode() + b'\0'
            vo = base + len(texts); texts += v.encode() + b'\0'
            strings += struct.pack('<QQ', ko, vo) + (struct.pack('<Q', len(v)) if version > 1 else b'')
    texts += b'\0' * (-len(texts) % 8)
    begin = base + len(texts); done = 0
    for i in images:
        entries += struct.pack('<HHIQQQQ', i[0], i[1], i[4] if len(i) > 4 else 0, at + done, len(i[2]), begin + len(data), len(i[3]))
        done += width * len(i[2]); data += i[3] + b'\0' * (-len(i[3]) % 8)
    body = entries + strings + texts + data
    return b'\x10\xff\x10\xad' + struct.pack('<IQQQ', version, 32 + len(body), 32, 40 if version == 1 else len(images)) + body
nv = lambda a: {'arch': a, 'triple': 'nvptx64-nvidia-cuda'}
amd = lambda a: {'triple': 'amdgcn-amd-amdhsa', 'arch': a}
def entry(kind, arch): return struct.pack('<HHIQIIHHIIIQQQ', kind, 0x101, 64, 8, 0, 0, 8, 1, arch, 0, 0, 0x11, 0, 0) + b'\0' * 8
body = entry(2, 90) + entry(1, 80)
fatbin = struct.pack('<IHHQ', 0xBA55ED50, 1, 16, len(body)) + body
one = pack(1, (CUBIN, OPENMP, nv('sm_80'), b'x' * 5)) + pack(1, (OBJECT, OPENMP, amd('gfx90a:xnack-'), b'y' * 9))
open('one.off', 'wb').write(one)
open('two.off', 'wb').write(pack(2, (CUBIN, CUDA, nv('sm_90a'), b'x'), (IR, CUDA, nv('sm_70'), b'x'), (PTX, CUDA, nv('sm_80'), b'x'),
    (OBJECT, HIP, amd('gfx1030'), b'y'), (SPIRV, SYCL, {'triple': 'spirv64'}, b'z'), (CUBIN, CUDA, nv('sm_75'), b'', 1)) +
    pack(2, (CUBIN, CUDA, nv('sm_90a'), b'x')))
open('fat.off', 'wb').write(pack(1, (FATBIN, CUDA, nv('sm_90'), fatbin)))
open('hip19.off', 'wb').write(pack(1, (IR, HIP19, amd('gfx90a'), b'y')))
# damage: each number of a header or an entry that lies, a text that is no word, an end that is cut
for n, (at, form, value) in enumerate([(4, '<I', 9), (8, '<Q', 1 << 60), (8, '<Q', 31), (16, '<Q', 1 << 63), (16, '<Q', (1 << 64) - 8), (34, '<H', 77),
        (40, '<Q', 1 << 62), (48, '<Q', 1 << 61), (56, '<Q', (1 << 64) - 1), (64, '<Q', 1 << 63)]):
    b = bytearray(one); struct.pack_into(form, b, at, value); open('bad%d.off' % n, 'wb').write(b)
open('bad10.off', 'wb').write(pack(1, (CUBIN, CUDA, nv('sm_80","x":"'), b'x')))
open('bad11.off', 'wb').write(one[:60])
b = bytearray(pack(2, (CUBIN, CUDA, nv('sm_80'), b'x'))); struct.pack_into('<Q', b, 24, 1 << 60); open('bad12.off', 'wb').write(b)
P
python3 make.py || exit 99
row() { has out "\"containers\":$1,\"sass\":[$2],\"ptx\":[$3],\"lto\":[$4],\"ptx_isa\":\"$5\",\"toolkit\":\"$6\",\"what\":\"$7\"}" "$8"; }
tap 0 'version 1' recon-check --format jsonl --images one.off
row 2 '"sm_80","gfx90a:xnack-"' '' '' '' '' OpenMP 'two binaries, one behind the other'
tap 0 'version 2' recon-check --format jsonl --images two.off
row 4 '"sm_90a"' '"sm_80"' '"sm_70"' '' '' 'CUDA by clang, not linked' 'several images in one binary, and one more'
row 1 '"gfx1030"' '' '' '' '' 'HIP, not linked' 'of another producer'
row 1 '' '' '"spirv64"' '' '' SYCL 'the triple where there is no architecture'
lacks out sm_75 'an entry without image does not count'
tap 0 'a fat binary inside' recon-check --format jsonl --images fat.off
row 1 '"sm_90"' '"compute_80"' '' 1.8 11.8 '' 'is read as such'
tap 0 'the older number of HIP' recon-check --format jsonl --images hip19.off
row 1 '' '' '"gfx90a"' '' '' 'HIP, not linked' 'is HIP'
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
    timeout 10 recon-check --format jsonl --images bad$i.off >out 2>err; got=$?
    if [ $got -lt 124 ] && ! grep -q '"x":' out; then ok "damaged $i"; else not_ok "damaged $i" "status $got" "$(cat out)"; fi
done

# in objects, libraries and programs
section() { printf '.section .llvm.offloading,"%s"\n.balign 8\n.incbin "%s"\n.section .note.GNU-stack,"",@progbits\n' "$2" "$1"; }
section two.off e >o.s; $CC -c -o o.o o.s || exit 99
tap 0 'an object' recon-check --images o.o
has out 'CUDA by clang, not linked' 'its images'
ar rcs lib.a o.o o.o
tap 0 'a static library' recon-check --format jsonl --images lib.a
row 8 '"sm_90a"' '"sm_80"' '"sm_70"' '' '' 'CUDA by clang, not linked' 'those of all members'
section one.off a >p.s
program app 'int main(void) { return 0; }' p.s
for g in 8.0 8.9 gfx90a; do tap 0 "OpenMP on $g" recon-check --assume gpu=$g --assume driver.cuda=13.0 ./app; lacks out arch-no-image 'has code'; done
for g in 7.5 9.0 gfx1030; do
    tap 0 "OpenMP on $g" recon-check --assume gpu=$g --assume driver.cuda=13.0 ./app
    has out "warn: arch-no-image: " 'is a warning'; has out "'app' has OpenMP device code for sm_80 gfx90a:xnack-, none for " 'with both'
done
has out 'add --offload-arch=gfx1030 to the build' 'and the remedy'
tap 75 'OpenMP that must not run on the host' env OMP_TARGET_OFFLOAD=MANDATORY recon-check --assume gpu=7.5 --assume driver.cuda=13.0 ./app

tap 0 'a pin' recon-pin capture -o app.pin ./app
has app.pin 'openmp = [ "sm_80", "gfx90a:xnack-" ]' 'has its targets'
sed 's/openmp = \[ "sm_80", "gfx90a:xnack-" \]/openmp = [ "ir:sm_60" ]/' app.pin >ir.pin
tap 75 'judged by the pin' env OMP_TARGET_OFFLOAD=MANDATORY recon-check --pin app.pin --assume gpu=7.5 --assume driver.cuda=13.0 --env-file /proc/self/environ
tap 0 'IR in a pin is compiled for any GPU of its vendor' recon-check --pin ir.pin --assume gpu=7.5 --assume driver.cuda=13.0
lacks out arch-no-image 'no warning'

# clang itself, without a GPU toolkit: IR and AMD's code in objects
clang=
for c in clang-21 clang-20 clang-19 clang-18 clang-17 clang; do command -v $c >which && clang=$c && break; done
cat >k.cu <<'C'
#define __global__ __attribute__((global))
struct dim3 { unsigned x, y, z; };
typedef unsigned long size_t;
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, struct hipStream *);
typedef int hipError_t;
typedef struct hipStream *hipStream_t;
extern "C" __global__ void k(float *x) { *x = 2; }
C
if [ "$clang" ] && $clang --offload-arch=gfx90a --offload-arch=gfx1030 -fgpu-rdc -x hip -nogpulib -nogpuinc --offload-new-driver -c k.cu -o hip.o 2>err; then
    tap 0 "$clang's own object" recon-check --format jsonl --images hip.o
    row 2 '' '' '"gfx1030","gfx90a"' '' '' 'HIP, not linked' 'its targets'
    readelf -S hip.o >sections; has sections .llvm.offloading 'are in that section'
else
    skip 'wants a clang that compiles HIP'
fi
finish

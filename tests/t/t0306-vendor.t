#!/bin/sh
# A vendor by its profile: a fake SDK made here (libsmr_runtime.so, smr-smi), programs of another vendor, links that pass one
# runtime off as the other, and every way in which the query can fail.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES CONDA_PREFIX VIRTUAL_ENV
. "$abs_top_srcdir/tests/finds.sh"
probe=$abs_top_builddir/libexec/recon/recon-probe
mkdir -p "$T/sdk/bin" "$T/sdk/lib" "$T/profiles"
cp "$abs_top_srcdir/tests/fakes/smr-smi" "$T/sdk/bin/smr-smi"
lib "$T/sdk/lib/libsmr_runtime.so.2" libsmr_runtime.so.2 'int smrInit(void){return 0;}'
sed "s|\"smr-smi\"|\"$T/sdk/bin/smr-smi\"|; /^device/d" "$abs_top_srcdir/profiles/smr.conf" >"$T/profiles/smr.conf"

tap 0 'the shipped profile, and none of these GPUs' "$probe"
lacks "$T/out" 'unknown' 'is no failure'
has "$T/out" '{ name = "smr"; runtimes = [ "libsmr_runtime.so"' 'the vendor is known all the same'
tap 0 'two of them' "$probe" --profiles "$T/profiles"
has "$T/out" '{ vendor = "smr"; name = "SMR X1"; uuid = "SMR-0001"; pci = "0000:3b:00.0"; compute_capability = "smr2"; memory_mib = 65536; }' 'the first'
has "$T/out" 'uuid = "SMR-0002"' 'the second'
{ cat "$T/out"; } >"$T/smr.facts"

# ---- programs
program "$T/own" 'int smrInit(void);int main(void){return smrInit();}' "$T/sdk/lib/libsmr_runtime.so.2" "-Wl,-rpath,$T/sdk/lib"
lib "$T/cuda/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
program "$T/foreign" 'int f(void);int main(void){return f();}' "$T/cuda/libcudart.so.12" "-Wl,-rpath,$T/cuda"
tap 0 'its own program' recon-check --assume "$T/smr.facts" "$T/own"
lacks "$T/out" 'error:' 'is fine'
tap 78 'a CUDA program' recon-check --assume "$T/smr.facts" "$T/foreign"
found wrong-vendor
has "$T/out" "needed by '$T/foreign', is nvidia's runtime, and the GPUs of" 'who needs what'
has "$T/out" "are smr's" 'and what is there'
rm "$T/cuda/libcudart.so.12"
tap 78 'whose runtime is not installed' recon-check --assume "$T/smr.facts" "$T/foreign"
found wrong-vendor
ln -s "$T/sdk/lib/libsmr_runtime.so.2" "$T/cuda/libcudart.so.12"
tap 78 'or is a link to the other one' recon-check --skip symbol-missing --assume "$T/smr.facts" "$T/foreign"
found wrong-vendor soname-mismatch
has "$T/out" "this file is 'libsmr_runtime.so.2' by its SONAME (smr's, not nvidia's)" 'says so'
tap 78 'its program on another vendor'"'"'s GPUs' recon-check --assume gpu=9.0 "$T/own"
found wrong-vendor
has "$T/out" "is smr's runtime, and the GPUs of" 'the other way round'

# ---- the query in every mood
for mood in fail garbage empty; do
    SMR_SMI=$mood; export SMR_SMI
    tap 0 "smr-smi: $mood" "$probe" --profiles "$T/profiles"
    if [ $mood = empty ]; then lacks "$T/out" 'gpus = ' 'no GPU'
    else has "$T/out" 'unknown = [ "smr: ' 'is told'; lacks "$T/out" 'gpus_known = true' 'and the GPUs are not known'; fi
done
SMR_SMI=hang
tap 0 'smr-smi hangs' timeout 20 "$probe" --deadline=500 --profiles "$T/profiles"
has "$T/out" 'unknown = [ "' 'is told'
has "$T/out" 'cores = ' 'the rest is there'
unset SMR_SMI
echo 'nme = "x";' >"$T/profiles/bad.conf"
tap 0 'a bad profile' "$probe" --profiles "$T/profiles"
has "$T/out" "bad.conf:1: unknown key 'nme', the nearest is 'name'" 'is told'
has "$T/out" 'SMR-0001' 'and the good one serves'
chmod 666 "$T/profiles/bad.conf"
tap 0 'a profile that others may write' "$probe" --profiles "$T/profiles"
has "$T/out" 'unknown = [ "profiles: ' 'is refused'
finish

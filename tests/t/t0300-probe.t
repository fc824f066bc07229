#!/bin/sh
# recon-probe: facts of this host; GPUs through a fake NVML in every mood; a hung or crashed driver gives `unknown`.
. "${abs_top_srcdir:?}/tests/lib.sh"
probe=$abs_top_builddir/libexec/recon/recon-probe
fake=$abs_top_builddir/tests/fakes/libnvidia-ml.so.1

tap 0 'facts of this host' "$probe"
cp "$T/out" "$T/host.facts"
has "$T/out" "node = \"$(uname -n)\";" 'host name'
has "$T/out" "kernel = \"$(uname -r)\";" 'kernel'
has "$T/out" "glibc = \"$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)\";" 'glibc'
has "$T/out" "\"GLIBC_2.2.5\"" 'version nodes of libc'
has "$T/out" "boot_id = \"$(cat /proc/sys/kernel/random/boot_id)\";" 'boot id'
has "$T/out" 'isa = "x86-64' 'instruction set level'
has "$T/out" "cores = " 'cores'
has "$T/out" 'cache = "/etc/ld.so.cache"' 'loader cache'
lacks "$T/out" 'unknown' 'every part answered'
[ "$(ulimit -S -l)" = unlimited ] && lock=-1 || lock=$(($(ulimit -S -l) * 1024))
has "$T/out" "memlock = $lock" 'locked memory'

# what the probe finds is what the environment of the job would not change
env LD_LIBRARY_PATH="$T" HWLOC_SYNTHETIC='node:3 core:5' "$probe" >"$T/out" 2>&1
has "$T/out" 'toolkit_places' 'starts under another LD_LIBRARY_PATH'

FAKE_NVML='' tap 0 'two GPUs' "$probe" --nvml "$fake"
has "$T/out" 'driver = { kernel_module = "570.211.01"; library = "570.211.01"; cuda = "12.8"; source = "nvml"; };' 'driver by NVML'
has "$T/out" 'uuid = "GPU-fake-1"; pci = "0000:1b:00.0"; compute_capability = "9.0"; memory_mib = 81920;' 'first GPU'
has "$T/out" 'uuid = "GPU-fake-2"; pci = "0000:1c:00.0"; compute_capability = "9.1"' 'second GPU'
has "$T/out" 'gpus_known = true;' 'GPUs are known'

FAKE_NVML=none; export FAKE_NVML
tap 0 'a driver without GPUs' "$probe" --nvml "$fake"
lacks "$T/out" 'gpus = ' 'no GPU'
has "$T/out" 'gpus_known = true;' 'and that is known'

FAKE_NVML=mig
tap 0 'MIG instances' "$probe" --nvml "$fake"
has "$T/out" 'uuid = "GPU-fake-1"; pci = "0000:1b:00.0"; compute_capability = "9.0"; memory_mib = 40960; mig = "MIG-fake-11";' 'first instance'
has "$T/out" 'mig = "MIG-fake-12"' 'second instance'
if [ "$(grep -c 'vendor = ' "$T/out")" = 2 ]; then ok 'the instances take the place of the GPU'
else not_ok 'the instances take the place of the GPU' "$(cat "$T/out")"; fi

FAKE_NVML=mismatch
tap 0 'driver and library of different updates' "$probe" --nvml "$fake"
has "$T/out" 'nvml: nvmlInit: Driver/library version mismatch' 'the reason is kept'
lacks "$T/out" 'gpus_known = true' 'GPUs are not known'

FAKE_NVML=lost
tap 0 'a lost GPU' "$probe" --nvml "$fake"
has "$T/out" 'nvml: GPU 1: GPU is lost' 'is named'
has "$T/out" 'GPU-fake-1' 'the other one is there'

FAKE_NVML=crash
tap 0 'NVML crashes' "$probe" --nvml "$fake"
has "$T/out" 'nvidia: ended without an answer' 'and is told'
has "$T/out" 'cores = ' 'the rest is there'

FAKE_NVML=hang
start=$(date +%s%N)
tap 0 'NVML hangs' "$probe" --nvml "$fake" --deadline=300
ms=$((($(date +%s%N) - start) / 1000000))
has "$T/out" 'nvidia: gave no answer within 300 ms' 'and is told'
has "$T/out" 'cores = ' 'the rest is there'
if [ $ms -lt 3000 ]; then ok 'in time'; else not_ok 'in time' "$ms ms"; fi
unset FAKE_NVML

tap 0 'no NVML at that path' "$probe" --nvml "$T/none.so"
has "$T/out" 'libnvidia-ml.so.1 is not found' 'is told'
lacks "$T/out" 'gpus_known = true' 'and the GPUs are not known'

# toolkits: the usual places, and those beside a named one
mkdir -p "$T/opt/cuda-12.4/lib64" "$T/opt/cuda-12.8/lib64" "$T/opt/cuda-9.2/bin" "$T/opt/other"
tap 0 'toolkits' "$probe" --toolkit="$T/opt/cuda-11.8" --tmpdir="$T"
has "$T/out" "\"$T/opt/cuda-9.2\", \"$T/opt/cuda-12.4\", \"$T/opt/cuda-12.8\"" 'the siblings, by version'
lacks "$T/out" "$T/opt/cuda-11.8" 'the one that is not there is not listed'
lacks "$T/out" "$T/opt/other" 'nor what is no toolkit'
has "$T/out" "\"$T/opt\" ];" 'where was looked'
tap 0 'a temporary folder that is not there' "$probe" --tmpdir="$T/none"
has "$T/out" "tmp_dir = \"$T/none\"; tmp_problem = \"it does not exist\"" 'is told'

# it starts where nothing but glibc is, and counts without hwloc
if readelf -dW "$probe" | grep -q 'NEEDED.*lib\(asan\|ubsan\|tsan\)'; then skip 'a sanitizer needs its libraries'
else lacks_other=$(readelf -dW "$probe" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^\(libc\|libm\|libdl\|ld-linux.*\)\.so')
    if [ -z "$lacks_other" ]; then ok 'it needs glibc alone'; else not_ok 'it needs glibc alone' "$lacks_other"; fi
fi
tap 0 'without hwloc' "$probe" --no-hwloc
for k in isa model cores numa_nodes; do
    has "$T/out" "$(grep -o "$k = [^;]*;" "$T/host.facts" | head -1)" "$k: as hwloc says"
done

tap 64 'bad deadline' "$probe" --deadline=-1
tap 64 'an argument' "$probe" x
one_line "$T/err" 'one line'
tap 64 'unknown option' "$probe" --nvm1 x
has "$T/err" "the nearest is '--nvml'" 'nearest option'

# ---- what a boot does not change is kept, whatever can change is looked at
keep=$T/kept
# looks TEXT 'name': the next probe with the folder says TEXT
looks() { "$probe" --cache="$keep" >"$T/out" 2>"$T/err"; has "$T/out" "$1" "$2"; }
same() { sed '/^taken/d; s/tmp_mib = [0-9]*; //; s/shm_mib = [0-9]*; //' "$1"; }
same "$T/host.facts" >"$T/wanted"
for i in 1 2; do
    tap 0 "kept, probe $i" "$probe" --cache="$keep"
    if same "$T/out" | cmp -s - "$T/wanted"; then ok 'the same facts'; else not_ok 'the same facts' "$(same "$T/out" | diff - "$T/wanted")"; fi
done
kept=$(echo "$keep"/node-*.facts)
real=$(sed -n 's/^cpu.*model = "\([^"]*\)".*/model = "\1"/p' "$T/host.facts")
# what a file that is believed would make the probe say
mark() { rm -rf "$keep"; "$probe" --cache="$keep" >/dev/null; sed -i 's/model = "[^"]*"/model = "kept"/' "$kept"; }
mark; looks 'model = "kept"' 'it comes from the file'
sed -i 's/^# boot .*/# boot 00000000-0000-0000-0000-000000000000/' "$kept"; looks "$real" 'of another boot: looked at again'
mark; sed -i 's/^# processors .*/# processors 0-9999/' "$kept"; looks "$real" 'other processors online: looked at again'
mark; sed -i 's|^\(# stamp .*\) [0-9]* /etc/ld.so.cache|\1 1 /etc/ld.so.cache|' "$kept"; looks "$real" 'another ld.so.cache: looked at again'
mark; sed -i 's|^# stamp \(.*/libc.so.6\)|# stamp 9\1|' "$kept"; looks "$real" 'another libc: looked at again'
mark; sed -i '/^loader/d' "$kept"; looks "$real" 'a part is missing: looked at again'
mark; head -c 900 "$kept" >"$T/cut"; cat "$T/cut" >"$kept"; looks "$real" 'cut short: looked at again'
looks "$real" 'and then whole again'; has "$kept" "$real" 'in the file, too'
mark; chmod o+w "$kept"; looks "$real" 'writable by others: not believed'
mark; chmod g+w "$keep"; looks "$real" 'in a folder that its group may write to: not believed'
mark; mv "$kept" "$T/elsewhere"; ln -s "$T/elsewhere" "$kept"; looks "$real" 'a symlink: not believed'
mark; rm "$kept"; mkfifo "$kept"; looks "$real" 'a FIFO: not believed, and no hang'
if [ "$(id -u)" = 0 ]; then mark; chown 12345 "$kept"; looks "$real" 'of another user: not believed'
else skip 'only root can give a file away'; fi
mark; FAKE_NVML=''; export FAKE_NVML; "$probe" --cache="$keep" --nvml "$fake" >"$T/out"; unset FAKE_NVML
has "$T/out" 'GPU-fake-2' 'GPUs are looked at each time'; has "$T/out" 'model = "kept"' 'beside what is kept'
looks 'gpus_known = true' 'and again'; lacks "$T/out" 'GPU-fake' 'gone are gone'
( ulimit -S -n 77; "$probe" --cache="$keep" --tmpdir="$T/none" >"$T/out" )
has "$T/out" 'open_files = 77' 'so are limits'; has "$T/out" 'it does not exist' 'so is TMPDIR'
rm -rf "$keep"
for i in $(seq 60); do "$probe" --cache="$keep" --deadline=60000 >"$T/many.$i" 2>&1 & done; wait
for i in $(seq 60); do same "$T/many.$i" | diff - "$T/wanted"; done >"$T/bad"
if [ -s "$T/bad" ]; then not_ok 'sixty at once say the same' "$(head -c 2000 "$T/bad")"; else ok 'sixty at once say the same'; fi
if [ "$(ls -A "$keep")" = "${kept##*/}" ]; then ok 'and leave one file'; else not_ok 'and leave one file' "$(ls -A "$keep")"; fi

# no process is left behind by a part that hung
sleep 0.1
if ps -e -o args= | grep -F "$fake" | grep -qv grep; then not_ok 'nothing is left' "$(ps -e -o pid,args= | grep -F "$fake")"
else ok 'nothing is left'; fi
finish

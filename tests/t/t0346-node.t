#!/bin/bash
# recon-check --node: the site's configuration, helpers by configured path, deadlines with names, formats; nothing of a user.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$T" || exit 99
umask 022
unset TMPDIR
none() { if pgrep -f "$T/bin/" >/dev/null 2>&1; then not_ok 'no process is left behind' "$(pgrep -af "$T/bin/")"; else ok 'no process is left behind'; fi; }
within() { if [ "$(($(date +%s%N) / 1000000 - t0))" -lt "$1" ]; then ok "$2"; else not_ok "$2" "$(($(date +%s%N) / 1000000 - t0)) ms"; fi; }
start() { t0=$(($(date +%s%N) / 1000000)); }
mkdir bin pins
conf() { printf '%s\n' "pins = \"$T/pins\"; state = \"$T/state\"; deadline = 2.0;" "$@" >node.conf; }

# D01: what is configured is not there
for m in prolog health; do
    tap 0 "D01 $m without a configuration" env RECON_PROLOG_CONF=/etc/recon/none.conf SLURM_JOB_ID=5 recon-check --node=$m --config "$T/none.conf"
    has "$T/err" 'nothing was checked' 'a line says so'
done
conf 'pins = "/nowhere";' 2>/dev/null; printf 'pins = "/nowhere"; deadline = 2.0;\n' >node.conf
tap 0 'no folder of pins' recon-check --node=prolog --config node.conf
printf 'nonsense = 1;\n' >node.conf
tap 0 'a configuration with an unknown key' recon-check --node=prolog --config node.conf
has "$T/err" 'nothing was checked' 'stops no job'
tap 64 'a mode that is none' recon-check --node=epilog
conf 'enabled = false;'
tap 0 'switched off' recon-check --node=health --config node.conf
has "$T/err" 'enabled is false' 'is told'
conf; chmod 666 node.conf
tap 0 'a configuration that others may write' recon-check --node=health --config node.conf
has "$T/err" 'nothing was checked' 'is not taken'

# D03, D07: nvidia-smi hangs, by its configured path; one of PATH is never run
printf '#!/bin/sh\nsleep 3600\n' >bin/nvidia-smi; chmod 755 bin/nvidia-smi
rm -f node.conf; conf "nvidia_smi = \"$T/bin/nvidia-smi\"; drain_on = [ \"gpu-hung\" ];"
start
tap 0 'D03 a hung nvidia-smi' recon-check --node=health --config node.conf
within 5000 'ends within the limit'
has "$T/out" 'gpu-hung: nvidia-smi' 'names what hung'
none
printf '#!/bin/bash\ntrap "" TERM INT HUP\nwhile :; do sleep 60; done\n' >bin/nvidia-smi
start
tap 0 'D07 one that ignores TERM' recon-check --node=health --config node.conf
within 5000 'ends within the limit'
has "$T/out" 'gpu-hung: nvidia-smi' 'names what hung'
none
printf '#!/bin/sh\n: >%s/ran\n' "$T" >bin/nvidia-smi
conf
tap 0 'not configured' env PATH="$T/bin:$PATH" recon-check --node=health --config node.conf
if [ -e ran ]; then not_ok 'nothing of PATH is run'; else ok 'nothing of PATH is run'; fi
chmod 777 bin/nvidia-smi; conf "nvidia_smi = \"$T/bin/nvidia-smi\";"
tap 0 'a helper that others may write' recon-check --node=health --config node.conf
if [ -e ran ]; then not_ok 'is not run'; else ok 'is not run'; fi
chmod 755 bin/nvidia-smi

# D05: Xid 79
echo '[ 4242.000001] NVRM: Xid (PCI:0000:44:00): 79, pid=1234, GPU has fallen off the bus.' >kmsg
conf "kernel_log = \"$T/kmsg\";"
tap 0 'D05' recon-check --node=health --config node.conf
has "$T/out" 'error: gpu-lost: 0000:44:00: Xid 79' 'is an error with the GPU and the number'
has "$T/out" 'drain, then reset the GPU or reboot' 'and the remedy'
tap 2 'in the style of Nagios' recon-check --node=health --config node.conf --format nagios
has "$T/out" 'RECON CRITICAL - ' 'is critical'
tap 0 'as JSON lines' recon-check --node=health --config node.conf --format jsonl
has "$T/out" '"rule":"gpu-lost","level":"error","scope":"node","object":"0000:44:00"' 'is a finding'
printf '6,11,4242000001,-;NVRM: Xid (PCI:0000:01:00): 48, pid=1, x\n6,12,4242000002,-;NVRM: Xid (PCI:0000:02:00): 13, pid=1, y\n' >kmsg
tap 0 'the form of /dev/kmsg' recon-check --node=health --config node.conf
has "$T/out" 'xid-fatal: 0000:01:00' 'a fatal one'
lacks "$T/out" '0000:02:00' 'an Xid of a program is not the node'

# D09: a remap that waits for a reset
printf '    Remapped Rows\n        Correctable Error                 : 0\n        Uncorrectable Error               : 4\n        Pending                           : Yes\n        Remapping Failure Occurred        : No\n' >q.txt
printf '#!/bin/sh\ncat %s/q.txt\n' "$T" >bin/nvidia-smi
conf "nvidia_smi = \"$T/bin/nvidia-smi\"; drain_on = [ \"gpu-error-state\" ];"
tap 0 'D09' recon-check --node=health --config node.conf
has "$T/out" 'warn: gpu-remap-pending' 'is a warning'
lacks "$T/out" 'error:' 'not an error'
has "$T/out" 'nvidia-smi -r' 'with the remedy'

# the baseline; what drains is the site's to say
conf 'gpus = 9;'
tap 0 'GPUs that are missing, not to be drained for' recon-check --node=prolog --config node.conf
has "$T/out" 'this node has 9' 'are told'
conf 'gpus = 9; drain_on = [ "gpu-lost" ];'
tap 1 'and to be drained for' env SLURMD_NODENAME=n7 recon-check --node=prolog --config node.conf
has "$T/state/prolog-reason.n7" 'gpu-lost' 'the reason is left for health'
tap 1 'a name that is no name' env SLURMD_NODENAME='../../x' recon-check --node=prolog --config node.conf
if [ -e "$T/state/prolog-reason.unknown" ]; then ok 'goes nowhere'; else not_ok 'goes nowhere' "$(ls -R "$T/state")"; fi
conf "mounts = [ \"$T\" ];"
tap 0 'a mount that is none' recon-check --node=prolog --config node.conf
has "$T/out" 'nothing is mounted' 'is told'

# a site pin
echo 'int f(void) { return 1; }' >f.c; echo 'int f(void); int main(void) { return f(); }' >m.c
${CC:-cc} -shared -fPIC -o libsite.so f.c && ${CC:-cc} -o prog m.c ./libsite.so && mkdir lib && mv libsite.so lib/ || { finish; }
sed -i 's|\./libsite|libsite|' prog 2>/dev/null
${CC:-cc} -o prog m.c -Llib -lsite
LD_LIBRARY_PATH=$T/lib recon-pin capture -o pins/site.pin -- ./prog || exit 99
conf 'drain_on = [ "lib-not-found" ];'
tap 0 'a site pin that is kept' recon-check --node=prolog --config node.conf
mv lib/libsite.so lib/gone
tap 1 'one that is broken' recon-check --node=prolog --config node.conf
has "$T/out" 'lib-not-found: libsite.so' 'names the library'
tap 0 'the environment of a user' env LD_LIBRARY_PATH="$T/x" RECON_PIN="$T/evil.pin" RECON_CHECK=error SLURM_JOB_COMMENT="$T/evil" \
    HOME="$T/evil" recon-check --node=prolog --config /nowhere
mv lib/gone lib/libsite.so
conf; start
for i in 1 2 3 4 5; do recon-check --node=prolog --config node.conf >/dev/null || not_ok 'a healthy node'; done
echo "# five prologs of a healthy node: $(($(date +%s%N) / 1000000 - t0)) ms"
finish

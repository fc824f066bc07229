#!/bin/sh
# recon-launch with a fake probe: which GPUs are the task's, the CPUs near them, a probe that hangs or talks nonsense.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/launch.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
unset RECON_CHECK RECON_PIN SLURM_JOB_ID SLURM_CPUS_PER_TASK CUDA_VISIBLE_DEVICES SLURM_JOB_GPUS SLURM_STEP_GPUS
probe=$T/copy/libexec/recon
mkdir -p "$T/copy/bin" "$probe"
cp "$abs_top_builddir/bin/recon-launch" "$T/copy/bin"
cp "$abs_top_srcdir/tests/fakes/fake-probe" "$probe/recon-probe"

# the first and the last CPU that this process may use: one near each GPU
mask=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first=${mask%%[-,]*} last=${mask##*[-,]}
"$abs_top_builddir/libexec/recon/recon-probe" >"$T/facts" 2>/dev/null || skip_all 'recon-probe does not run here'
grep -v '^gpus' "$T/facts" >"$probe/facts"
cat >>"$probe/facts" <<F
gpus_known = true;
gpus = ( { vendor = "nvidia"; name = "Fake"; uuid = "GPU-aaaa-1"; pci = "0000:01:00.0"; compute_capability = "9.0"; memory_mib = 81559; cpus = [ $first ]; },
         { vendor = "nvidia"; name = "Fake"; uuid = "GPU-bbbb-2"; pci = "0000:02:00.0"; compute_capability = "9.0"; memory_mib = 81559; cpus = [ $last ]; } );
F
sh=$(readlink -f /bin/sh)
pin "$T/p.pin" "$sh"
new_run "$T/run" 1 one
i=0
task() { # task NAME=VALUE...: CPUs of the program in $cpus, GPUs of the record in $gpus
    cpus=$(env "$@" "$T/copy/bin/recon-launch" ${opts:-} --pin "$T/p.pin" --run "$T/run" --sub 0 --task 0 -- \
        "$sh" -c 'sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status' 2>"$T/err")
    gpus=$(sed -n 's/.*"gpus":\[\([^]]*\)\].*/\1/p' "$T/run/events/0/0/0.$i.jsonl" | tr -d '"')
    i=$((i + 1))
}
task A=b
same "$gpus" 'GPU-aaaa-1,GPU-bbbb-2' 'outside Slurm: every GPU'
task SLURM_JOB_ID=5
same "$gpus $cpus" " $mask" 'in a job without GPUs: none, and its CPUs as they were'
task SLURM_JOB_ID=5 SLURM_JOB_GPUS=0-1
same "$gpus" 'GPU-aaaa-1,GPU-bbbb-2' 'SLURM_JOB_GPUS, a range'
task CUDA_VISIBLE_DEVICES=1 SLURM_JOB_GPUS=0
same "$gpus" GPU-bbbb-2 'CUDA_VISIBLE_DEVICES goes before'
task CUDA_VISIBLE_DEVICES=GPU-bb,0
same "$gpus" 'GPU-bbbb-2,GPU-aaaa-1' 'by the start of a UUID'
task CUDA_VISIBLE_DEVICES=1,none,0
same "$gpus" GPU-bbbb-2 'an entry that is none cuts the list'
task CUDA_VISIBLE_DEVICES=7
same "$gpus $cpus" " $mask" 'a GPU that is not there'
if [ "$first" = "$last" ]; then
    skip 'one CPU here'
else
    task CUDA_VISIBLE_DEVICES=0
    same "$cpus" "$first" 'confined to the CPUs near the GPU'
    task CUDA_VISIBLE_DEVICES=1
    same "$cpus" "$last" 'or near the other'
    task CUDA_VISIBLE_DEVICES=0 SLURM_CPUS_PER_TASK=2
    same "$cpus" "$mask" 'never to fewer than were asked for'
    opts=--no-bind
    task CUDA_VISIBLE_DEVICES=0
    opts=
    same "$cpus" "$mask" '--no-bind'
    sed -i 's/cpus = \[ [0-9]* \]/cpus = [ 4095 ]/' "$probe/facts"
    task CUDA_VISIBLE_DEVICES=0
    same "$cpus" "$mask" 'near CPUs that are not ours: left as it was'
fi
tap 0 'the record is valid' validate_run "$T/run"

# recon's own faults do not stop a program
launch() { "$T/copy/bin/recon-launch" -v --pin "$T/p.pin" -- "$sh" -c 'echo ran'; }
echo 'not = a facts file' >"$probe/facts"
tap 0 'a probe that talks nonsense' launch
has "$T/out" ran 'the program runs'
: >"$probe/hang"
from=$(date +%s)
tap 0 'a probe that hangs' launch
has "$T/out" ran 'the program runs'
if [ $(($(date +%s) - from)) -lt 15 ]; then ok 'within the deadline'; else not_ok 'within the deadline'; fi
finish

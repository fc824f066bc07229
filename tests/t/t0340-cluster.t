#!/bin/sh
# tests/cluster: four nodes that differ, up in about a second; several at once; nothing left behind.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
for p in slurmctld slurmd munged sinfo srun unshare; do
    command -v $p >/dev/null || skip_all "no $p here (Debian: slurmctld slurmd slurm-client munge)"
done
[ "$(id -u)" = 0 ] || skip_all 'needs root'
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
C=$T/one
trap '"$cluster" stop "$C" 2>/dev/null; "$cluster" stop "$T/two" 2>/dev/null
      chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT

# what the nodes shall see: a CUDA tree that h1 lacks, a library on a1 only, a file of the system replaced on a2
mkdir -p "$T/cuda/lib64" "$C/nodes/a1/lib" "$C/nodes/a2/root/etc" "$C/nodes/c1"
echo runtime >"$T/cuda/lib64/libcudart-of-test.so.1"
echo 'int only_on_a1;' >"$T/l.c"
${CC:-cc} -shared -fPIC -o "$C/nodes/a1/lib/libonlya1.so.1" -Wl,-soname,libonlya1.so.1 "$T/l.c"
echo 'of a2' >"$C/nodes/a2/root/etc/os-release"
printf '#!/bin/sh\necho "$NODE" >"$DIR/node/was-set-up"\n' >"$C/nodes/c1/setup"
chmod +x "$C/nodes/c1/setup"

before=$(date +%s%N)
tap 0 'start' "$cluster" start --cuda-tree "$T/cuda" --without-cuda h1 "$C"
ms=$((($(date +%s%N) - before) / 1000000))
if [ $ms -lt 10000 ]; then ok "up in reasonable time ($ms ms)"; else not_ok 'up in reasonable time' "$ms ms"; fi
eval "$("$cluster" env "$C")"
sinfo -h -N -p all -o '%N %T %G' >"$T/nodes"
printf '%s\n' 'a1 idle gpu:a100:2' 'a2 idle gpu:a100:2' 'c1 idle (null)' 'h1 idle gpu:h100:4' >"$T/want"
tap 0 'four idle nodes with their GRES' diff "$T/nodes" "$T/want"

cat >"$T/look" <<'E2'
#!/bin/sh
echo "$(hostname) $(ls "$1/cuda" | wc -l) $(ldconfig -p | grep -c libonlya1) $(head -n 1 /etc/os-release | cut -c 1-5)"
cat "$1/node/was-set-up" 2>/dev/null
exit 0
E2
chmod +x "$T/look"
own=$(head -n 1 /etc/os-release | cut -c 1-5)
view() { # view NODE 'what the job prints' 'name'
    srun -w "$1" "$T/look" "$C" >"$T/out" 2>"$T/err"
    if [ "$(cat "$T/out")" = "$2" ]; then ok "$3"; else not_ok "$3" "$(cat "$T/out" "$T/err")" "wanted: $2"; fi
}
view a1 "a1 1 1 $own" 'a1: CUDA tree and its own library in ld.so.cache'
view a2 'a2 1 0 of a2' 'a2: its own system file'
view h1 "h1 0 0 $own" 'h1: no CUDA runtime'
view c1 "c1 1 0 $own
c1" 'c1: its setup ran'
srun --gres=gpu:h100:2 sh -c 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"' >"$T/out" 2>&1
has "$T/out" 'h1 0,1' 'typed GPUs are given by number'
tap 0 'a command in a view of a node' "$cluster" in "$C" a2 cat /etc/os-release
has "$T/out" 'of a2' 'sees what the node sees'

tap 0 'a second cluster beside it' "$cluster" start "$T/two"
tap 0 'the second works' env SLURM_CONF="$T/two/etc/slurm.conf" srun -w h1 true
tap 0 'and so does the first' srun -w h1 true
tap 1 'a running cluster is not started over' "$cluster" start "$C"
has "$T/err" 'has a running cluster' 'and is told so'
tap 0 'stop the second' "$cluster" stop "$T/two"
tap 0 'the first is still up' scontrol ping

# a job is running while it stops
sbatch -w a1 -o "$T/job.out" --wrap 'setsid sleep 600 & sleep 600' >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do [ -e "$T/job.out" ] && break; sleep 0.2; done
if [ -e "$T/job.out" ]; then ok 'a job runs'; else not_ok 'a job runs' "$(squeue)"; fi
tap 0 'stop' "$cluster" stop "$C"
left=
for p in /proc/[0-9]*; do
    [ "${p#/proc/}" = $$ ] && continue
    if grep -qF " $C/" "$p/mountinfo" 2>/dev/null ||
        tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -q "^[a-z/]*\(slurm[a-z]*\|munged\).*$C/"; then
        left="$left ${p#/proc/}"
    fi
done
if [ -z "$left" ]; then ok 'no process and no mount is left'; else not_ok 'left' "$left" "$(ps -fp $left)"; fi
lacks /proc/self/mountinfo "$T/" 'no mount is left here'
tap 0 'stop of a stopped cluster' "$cluster" stop "$C"
finish

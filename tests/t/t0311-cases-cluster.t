#!/bin/bash
# The cases of environments on a real Slurm: what a shell has and a step has not, through srun, sbatch and recon-submit.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/finds.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sinfo sbatch unshare; do
    command -v $p >/dev/null || skip_all "no $p here (Debian: slurmctld slurmd slurm-client munge)"
done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster C=$T/c
trap '"$cluster" stop "$C" 2>/dev/null; chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES CONDA_PREFIX VIRTUAL_ENV RECON_CHECK RECON_PIN
launch=$(command -v recon-launch) check=$(command -v recon-check) mine=$PATH

# every node has a toolkit 12.4 and 12.8; 11.8 is on the login node alone
mkdir -p "$T/tree/cuda-12.4/lib64" "$T/tree/cuda-12.8/lib64" "$T/cuda/cuda-11.8/lib64"
tap 0 'the cluster starts' "$cluster" start --cuda "$T/cuda" --cuda-tree "$T/tree" "$C"
eval "$("$cluster" env "$C")"
cd "$T" || exit 99
program "$T/app" 'int main(void){return 0;}'
tap 0 'a pin' env CUDA_HOME=/usr recon-pin capture -o plain.pin "$T/app"

# A01: a list of variables for srun wipes the rest
tap 0 'A01: --export=NAME=VALUE' srun -w c1 --export=DATASET=/data/office "$launch" --pin "$T/plain.pin" -- "$T/app"
found env-not-exported
has "$T/err" 'of this Slurm step; restored from the pin' 'A01: it says that the step lacks it'
has "$T/err" '--export=ALL' 'A01: and what to write'
echo "$T/app" >list.txt
echo 'env = [ "DATASET=/data/office", "EXTRA" ];' >recon.conf
tap 0 'A01: submitted with variables of its own' env EXTRA="it's" CUDA_HOME=/usr recon-submit --dry-run -w c1 -p all --datasets list.txt -- "$T/app" '{dataset}'
has "$T/out" "export DATASET='/data/office'" 'A01: a plain export line'
has "$T/out" "export EXTRA='it'\\''s'" 'A01: for each'
has "$T/out" 'export SLURM_EXPORT_ENV=ALL' 'A01: and steps get all'
rm recon.conf

# A03: the user's own script, and ours, in a batch shell whose home has no ~/.bashrc
mkdir -p envs/gs/bin home
printf '#!/bin/bash\necho python of gs >"$1"/who\n' >envs/gs/bin/python; chmod +x envs/gs/bin/python
printf '#!/bin/bash\n#SBATCH --time=10\nconda activate gs\npython recon.py\n' >user.sh; chmod +x user.sh
tap 78 'A03: conda activate' "$check" user.sh
found shell-init-missing
tap 78 'A03: wrapped' recon-submit -p all -w c1 --datasets list.txt --wrap-script user.sh
has "$T/err" 'not submitted: shell-init-missing' 'A03: is not submitted'
tap 0 'A03: the prefix pinned' env HOME="$T/home" CONDA_PREFIX="$T/envs/gs" PATH="$T/envs/gs/bin:$mine" \
    recon-submit --watch --run-dir run3 -p all -w c1 --datasets list.txt -- python '{out}'
if [ "$(cat run3/out/0/0/who 2>/dev/null)" = 'python of gs' ]; then ok "A03: the job has the prefix' python"
else not_ok "A03: the job has the prefix' python" "$(cat "$T/err" run3/logs/* 2>/dev/null)"; fi
lacks run3/sub/0.sbatch 'bashrc"' 'A03: the script reads no file of the home'
sed "s|^umask .*|umask nonsense|" run3/sub/0.sbatch >broken.sbatch
sbatch --parsable --wait -o broken.log broken.sbatch >/dev/null 2>&1; rc=$?
if [ $rc != 0 ]; then ok 'A03: a set-up line that fails ends it'; else not_ok 'A03: a set-up line that fails ends it' "$(cat broken.log)"; fi

# A05: both forms of a MIG instance's name, on a node without it
for v in MIG-377e0049-554c-540b-93c6-000000000001 MIG-GPU-8932f937-d72c-4106-c12f-000000000002/1/0; do
    tap 75 "A05: $v" srun -w c1 --export="ALL,CUDA_VISIBLE_DEVICES=$v" "$check" --assume gpu=none "$T/app"
    found device-not-visible
    has "$T/out" "'$v'" 'A05: quotes the value'
done

# A07: limits of a step: the user's soft one, and the daemon's hard one
if [ "$(ulimit -H -l)" = unlimited ] || [ "$(ulimit -H -l)" -gt 64 ]; then
    tap 0 'A07: a soft limit' bash -c 'ulimit -S -l 64; exec srun --propagate=MEMLOCK -w c1 "$@"' - "$check" "$T/app"
    has "$T/out" 'warn: memlock-low' 'A07: is a warning'
    has "$T/out" 'ulimit -l unlimited' 'A07: that the script can lift'
    tap 0 'A07: a hard limit' srun -w c1 bash -c 'ulimit -l 64; exec "$@"' - "$check" "$T/app"
    has "$T/out" 'LimitMEMLOCK=infinity' 'A07: that only the administrator can'
else skip 'A07: locked memory is limited here'; fi
tap 0 'A07: in a job' "$launch" --check-only --pin plain.pin
srun -w c1 bash -c 'ulimit -l 64; exec "$@"' - "$launch" --pin "$T/plain.pin" -- "$T/app" >"$T/out" 2>"$T/err"; rc=$?
if [ $rc = 0 ]; then ok 'A07: the launcher starts it all the same'; else not_ok 'A07: the launcher starts it' "$rc" "$(cat "$T/err")"; fi

# A09: a colon at the end is the working directory
lib "$T/geo/cwd/libgeo.so.1" libgeo.so.1 'int f(void){return 13;}'
lib "$T/geo/good/libgeo.so.1" libgeo.so.1 'int f(void){return 42;}'
program "$T/geo/app" 'int f(void);int main(void){return f()==42?0:f();}' "$T/geo/good/libgeo.so.1" '-Wl,-rpath,$ORIGIN/good'
tap 13 'A09: the loader takes it' srun -w c1 -D "$T/geo/cwd" --export=ALL,LD_LIBRARY_PATH=/opt/none: ../app
srun -w c1 -D "$T/geo/cwd" --export=ALL,LD_LIBRARY_PATH=/opt/none: "$check" --libs ../app >"$T/out" 2>"$T/err"
has "$T/err" 'warn: ldpath-cwd' 'A09: is told'
has "$T/out" "libgeo.so.1 => $T/geo/cwd/libgeo.so.1" 'A09: the resolved path is the one that is taken'
tap 0 'A09: submitted from such a shell' env LD_LIBRARY_PATH=/opt/none: recon-submit --watch --run-dir "$T/run9" -p all -w c1 \
    --chdir="$T/geo/cwd" --datasets list.txt -- "$T/geo/app" '{dataset}'
has run9/sub/0.sbatch "export LD_LIBRARY_PATH='/opt/none'" 'A09: the script has no empty element'
tap 0 'A09: nothing but empty ones' env LD_LIBRARY_PATH=:: recon-submit --dry-run -p all --datasets list.txt -- "$T/geo/app" '{dataset}'
has "$T/out" 'unset LD_LIBRARY_PATH' 'A09: is none'

# A11: a toolkit that the login node alone has
tap 0 'A11: a pin' env CUDA_HOME="$T/cuda/cuda-11.8" LD_LIBRARY_PATH="$T/cuda/cuda-11.8/lib64" recon-pin capture -o cuda.pin "$T/app"
tap 75 'A11: on the node' srun -w a1 "$launch" --pin "$T/cuda.pin" -- "$T/app"
has "$T/err" 'error: cuda-home-missing' 'A11: refused'
has "$T/err" "$T/cuda/cuda-12.4, $T/cuda/cuda-12.8" 'A11: those that are there are named'
lacks "$T/err" 'env-drift' 'A11: nothing is switched'

# A13: the script is run from a spool folder, in another working directory
mkdir work; cp list.txt work/; cp app work/rel-app
cd work || exit 99
tap 0 'A13: submitted by relative names' recon-submit --watch --run-dir ../run13 -p all -w c1 --datasets list.txt -- ./rel-app '{dataset}'
cd ..
if grep -rq '"status":"done"' run13/events; then ok 'A13: slurmd runs it from its spool'; else not_ok 'A13: slurmd runs it from its spool' "$(cat run13/logs/*)"; fi
mkdir -p spool/job00007
cp run13/sub/0.sbatch spool/job00007/slurm_script
( cd / && env -i PATH=/usr/bin:/bin SLURM_ARRAY_TASK_ID=0 SLURM_RESTART_COUNT=7 bash "$T/spool/job00007/slurm_script" ) >"$T/out" 2>"$T/err"; rc=$?
if [ $rc = 0 ] && [ -e "$(ls -d run13/events/0/0/0.7.jsonl)" ]; then ok 'A13: and from anywhere else'
else not_ok 'A13: and from anywhere else' "$rc" "$(cat "$T/out" "$T/err"; find run13/events)"; fi
finish

#!/bin/bash
# What is told before anything is queued, without a controller: limits and GRES of a slurm.conf, traps of units, times,
# folders, names and environments; and nodes that saved facts rule out.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
cd "$T" || exit 99
unset ${!SLURM_*} ${!SBATCH_*} LD_LIBRARY_PATH
export HOME=$T
for i in $(seq 5); do echo "s$i"; done >list.txt
cat >slurm.conf <<'END'
ClusterName=x
SlurmctldHost=nowhere(127.0.0.1)
SlurmctldPort=1
MessageTimeout=60
UnkillableStepTimeout=180
GresTypes=gpu
NodeName=DEFAULT CPUs=16 RealMemory=64000
NodeName=g[1-2] Gres=gpu:a100:2 Feature=a100,cuda12
NodeName=h1 Gres=gpu:h100:4 Feature=h100
NodeName=c[01-04]
PartitionName=gpu Nodes=g[1-2],h1 MaxTime=1-00:00:00
PartitionName=cpu Nodes=c[01-04] Default=YES MaxTime=60
END
export SLURM_CONF=$T/slurm.conf
dry() { recon-submit --dry-run --set submit.via=nobody "$@" --datasets list.txt -- cat '{dataset}'; }

tap 0 'without a controller a dry run goes by slurm.conf' dry
has "$T/err" "not asked: the controller; partitions, GRES and limits are those of '$T/slurm.conf'" 'and says so'
has "$T/err" 'QOS limits are not known' 'and what it could not ask'

# C01: more datasets than MaxArraySize 1001 (Slurm's own where slurm.conf says nothing)
seq -f 'scene%04.0f_00' 0 2004 >many.txt
tap 0 'C01' recon-submit --dry-run --set submit.via=nobody --set datasets_per_task=1 --set max_running=40 --datasets many.txt -- cat '{dataset}'
has "$T/err" 'this is the first of 3 submissions' 'three submissions'
has "$T/out" '#SBATCH --array=0-1000%40' 'no index above 1000, and the throttle holds over them, one after the other'
tap 0 'by itself' recon-submit --dry-run --set submit.via=nobody --datasets many.txt -- cat '{dataset}'
has "$T/out" '#SBATCH --array=0-668' 'one submission of three a task'

# C03: a template with DOS ends
sed 's/$/\r/' "$abs_top_srcdir/templates/default.sbatch" >dos.sbatch
tap 0 'C03' dry --set template=./dos.sbatch
has "$T/err" 'has DOS line ends, which are left out' 'is told'
if grep -q $'\r' "$T/out"; then not_ok 'no CR in the script'; else ok 'no CR in the script'; fi

# C05: a blank in every path
mkdir -p "work dir/red kitchen"; echo "$T/work dir/red kitchen/seq 01" >"work dir/list.txt"
tap 0 'C05' recon-submit --dry-run --set submit.via=nobody --run-dir "work dir/run" -D "$T/work dir" --datasets "work dir/list.txt" -- cat '{dataset}'
has "$T/out" "#SBATCH --chdir=\"$T/work dir\"" 'chdir in quotes'
has "$T/out" "#SBATCH --output=\"$T/work dir/run/logs/%A_%a.log\"" 'output in quotes'
tap 0 'the shell takes it' bash -n "$T/out"

# C07: directives after the first command
{ head -n 1 "$abs_top_srcdir/templates/default.sbatch"; echo 'set -eu'; tail -n +2 "$abs_top_srcdir/templates/default.sbatch"; } >late.sbatch
tap 64 'C07' dry --set template=./late.sbatch
has "$T/err" 'late.sbatch:3: a directive after the first command, which sbatch would ignore' 'is refused with its line'

# C09: times
tap 0 'C09 02:00' dry -t 02:00
has "$T/out" '#SBATCH --time=0-00:02:00' 'is two minutes'
has "$T/err" 'time-hhmm' 'found'
has "$T/err" 'did you mean 02 hours' 'and asked about'
tap 0 'C09 120' dry -p gpu -t 120
has "$T/out" '#SBATCH --time=0-02:00:00' 'is 120 minutes'
lacks "$T/err" 'time-hhmm' 'without a remark'
tap 0 'C09 2:00:00' dry -p gpu -t 2:00:00
has "$T/out" '#SBATCH --time=0-02:00:00' 'is two hours'

# C11: memory
tap 0 'C11 64000' dry --mem=64000
has "$T/out" '#SBATCH --mem=64000M' 'gets its unit'
has "$T/err" 'is taken as 64000M, megabytes' 'and is echoed so'
tap 78 'C11 64G' dry --mem=64G
has "$T/err" 'mem-too-big' 'is more than a node has'
tap 0 'C11 62G' dry --mem=62G
lacks "$T/err" 'mem-unit' 'has its unit'

# C13: a cluster without GPUs; types; partitions; time; features
cat >linear.conf <<'END'
SelectType=select/linear
NodeName=n1 CPUs=16 RealMemory=64000
PartitionName=dgx Nodes=n1 Default=YES
END
export SLURM_CONF=$T/linear.conf
tap 78 'C13' dry --gpus=1
has "$T/err" "gres-not-configured" 'is refused'
has "$T/err" 'GresTypes is not set' 'naming GresTypes'
has "$T/err" 'select/linear, which takes no --gpus' 'and the plugin'
export SLURM_CONF=$T/slurm.conf
tap 78 'GPUs in a partition without' dry --gres=gpu:1
has "$T/err" "no node of partition 'cpu' has a GRES 'gpu'" 'is refused'
tap 78 'an unknown type' dry -p gpu --gres=gpu:b200:1
has "$T/err" "there are: a100, h100" 'with those that are'
tap 0 'a known type' dry -p gpu --gres=gpu:h100:1
tap 78 'an unknown partition' dry -p gpus
has "$T/err" 'partition-unknown' 'is refused'
has "$T/err" 'gpu, cpu' 'with those that are'
tap 78 'too long' dry -t 2:00:00
has "$T/err" "time-limit" 'is refused'
has "$T/err" "partition 'cpu' gives at most 60 min" 'with the bound'
tap 78 'an unknown feature' dry -p gpu -C b200
has "$T/err" "feature-unknown" 'is refused'
tap 0 'a known one' dry -p gpu -C 'a100&cuda12'

# C15: folder of logs
tap 0 'C15, a dry run' dry -o "$T/not/yet/there/%A_%a.out"
has "$T/err" 'which would be made' 'says what would be done'
if [ -e not ]; then not_ok 'and makes nothing'; else ok 'and makes nothing'; fi
tap 0 'C15' recon-submit --local --run-dir logged -o "$T/not/yet/there/%A_%a.out" --datasets list.txt -- true '{dataset}'
if [ -d not/yet/there ]; then ok 'the folder is there'; else not_ok 'the folder is there' "$(cat "$T/err")"; fi
: >file
tap 78 'one that cannot be made' dry -o "$T/file/%a.out"
has "$T/err" 'log-dir-missing' 'is refused'

# C17: the list is not in the script
seq -f '/scratch/projects/reconstruction/datasets/very/long/prefix/scene_%06.0f/sequence-01' 1 100000 >long.txt
tap 0 'C17' recon-submit --dry-run --set submit.via=nobody --datasets long.txt -- cat '{dataset}'
if [ "$(wc -c <"$T/out")" -lt 65536 ]; then ok 'the script is short'; else not_ok 'the script is short' "$(wc -c <"$T/out")"; fi
tap 78 'a script that is too big' env "RECON_BIG=$(head -c 100000 /dev/zero | tr '\0' x)" SLURM_CONF="$T/small.conf" bash -c \
    'sed "s/^GresTypes/SchedulerParameters=max_script_size=50000\nGresTypes/" slurm.conf >small.conf
    recon-submit --dry-run --set submit.via=nobody --set "env=[\"RECON_BIG\"]" --datasets list.txt -- cat "{dataset}"'
has "$T/err" 'script-too-big' 'is refused'

# environments and patterns
tap 0 'a shell inside a job' env SLURM_JOB_ID=5 recon-submit --dry-run --set submit.via=nobody --datasets list.txt -- cat '{dataset}'
has "$T/err" 'slurm-env-stale' 'is told'
tap 0 'a variable that nobody reads' env SBATCH_MEM=64G recon-submit --dry-run --set submit.via=nobody --datasets list.txt -- cat '{dataset}'
has "$T/err" 'sbatch reads SBATCH_MEM_PER_NODE' 'is told'
tap 0 'a pattern for a shell' dry -o "\$HOME/%a.out"
has "$T/err" 'directive-not-expanded' 'is told'
tap 64 'all tasks into one file' dry -o out.log
has "$T/err" 'all tasks would write one file' 'is refused'

# D11: what only the site can mend
tap 69 'test-only without a controller' recon-submit --test-only --set submit.via=nobody --datasets list.txt -- cat '{dataset}'
has "$T/err" 'unkillable-timeout-low' 'D11 is told'
has "$T/err" 'at least 300 are wanted' 'with the bound'
lacks "$T/err" 'would be refused' 'and nothing is claimed'

# saved facts: h1 cannot run it
mkdir -p facts cuda-13.0/bin cuda-13.0/include && : >cuda-13.0/bin/nvcc && chmod +x cuda-13.0/bin/nvcc
for i in g1 g2; do printf 'version = 1; node = "%s"; toolkits = [ "%s" ]; toolkit_places = [ "%s" ];\n' "$i" "$T/cuda-13.0" "$T" >facts/$i.facts; done
printf 'version = 1; node = "h1"; toolkits = [ "%s" ]; toolkit_places = [ "%s" ];\n' "$T/cuda-11.8" "$T" >facts/h1.facts
fact() {
    env CUDA_HOME="$T/cuda-13.0" recon-submit --dry-run --set submit.via=nobody -p gpu --set "facts=$T/facts" "$@" \
        --datasets list.txt -- cat '{dataset}'
}
tap 0 'facts' fact
has "$T/out" '#SBATCH --exclude=h1' 'the node that cannot is excluded'
has "$T/err" '1 of 3 nodes cannot run it' 'and it is told'
tap 78 'only that node' fact --gres=gpu:h100:1
has "$T/err" 'none of the 1 nodes that the job may go to can run it' 'is refused'
has "$T/err" 'cuda-home-missing' 'with the reason'
# a pin that is captured now promises what is wrong in this shell to every node
lib "$T/q/good/libq.so.1" libq.so.1 'int q(void){return 0;}'
lib "$T/q/bad/libq.so.1" libq.so.1 'int r(void){return 0;}'
program "$T/q/app" 'int q(void);int main(void){return q();}' "$T/q/good/libq.so.1" '-Wl,-z,now'
own() { env -u SLURM_CONF "$@" recon-submit --dry-run --datasets list.txt -- "$T/q/app" '{dataset}'; }
tap 0 'a shell with the right library' own "LD_LIBRARY_PATH=$T/q/good"
lacks "$T/err" 'error:' 'no word'
tap 78 'a shell with another one' own "LD_LIBRARY_PATH=$T/q/bad"
has "$T/err" "not submitted: symbol-missing: '$T/q/app' needs 'q'" 'is refused'
tap 0 'unless told' own "LD_LIBRARY_PATH=$T/q/bad" RECON_CHECK=warn
has "$T/err" "error: symbol-missing: $T/q/app" 'it is said all the same'
tap 0 'or not asked' own "LD_LIBRARY_PATH=$T/q/bad" RECON_CHECK=off
lacks "$T/err" 'error:' 'then nothing is said'

env -u SLURM_CONF recon-submit --dry-run --datasets list.txt -- cat '{dataset}' >"$T/out" 2>"$T/err"
if [ -e /etc/slurm/slurm.conf ]; then skip 'no slurm.conf at all'; else has "$T/err" 'not asked: partitions, time, memory, GRES' 'no slurm.conf at all: says what was not asked'; fi
finish

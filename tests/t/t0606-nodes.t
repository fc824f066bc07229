#!/bin/bash
# On which nodes a job can run, without a controller: slurm.conf with Include, constraints, what each node has, the site's map
# of GRES types and features to architectures.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
cd "$T" || exit 99
unset ${!SLURM_*} ${!SBATCH_*} LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES
export HOME=$T
printf 's%d\n' 1 2 3 >list.txt
mkdir -p conf/parts
cat >conf/slurm.conf <<'END'
ClusterName=x
SlurmctldHost=nowhere(127.0.0.1)
GresTypes=gpu
include parts/nodes.conf   # the nodes
PartitionName=gpu Nodes=g[1-2],h1 \
    Default=YES MaxTime=60
PartitionName=cpu Nodes=c[01-04]
END
cat >conf/parts/nodes.conf <<'END'
NodeName=DEFAULT CPUs=16 RealMemory=64000
NodeName=g1 Gres=gpu:a100:2 Feature=a100,cuda12,rack1
NodeName=g2 Gres=gpu:a100:2 Feature=a100,cuda11,rack2
NodeName=h1 Gres=gpu:h100:4 Feature=h100,cuda12,rack2 CPUs=64
Include parts/more.conf
END
echo 'NodeName=c[01-04] Feature=cpuonly RealMemory=128000' >conf/parts/more.conf
export SLURM_CONF=$T/conf/slurm.conf
dry() { recon-submit --dry-run --set submit.via=nobody "$@" --datasets list.txt -- cat '{dataset}'; }

# Include
tap 0 'a partition whose nodes are in an included file' dry -p cpu --mem=100G
tap 78 'and their bounds' dry --mem=100G
has "$T/err" 'the largest node of' 'count'
tap 78 'a line that goes on' dry -t 61
has "$T/err" "partition 'gpu' gives at most 60 min" 'is read whole'
echo 'Include parts/more.conf' >>conf/parts/more.conf
tap 0 'files that include each other' dry
has "$T/err" 'not asked: partitions' 'are no answer, and no endless one'
sed -i 2d conf/parts/more.conf

# constraints: what is asked, which of g1 g2 h1 may take it
mkdir facts
for i in g1 g2 h1; do # facts that no node passes: the error names the nodes that were looked at
    printf 'version = 1; node = "%s"; toolkits = [ "/x" ]; toolkit_places = [ "%s" ];\n' $i "$T" >facts/$i.facts
done
where() { # where NODES CONSTRAINT
    env CUDA_HOME="$T/cuda-13.0" recon-submit --dry-run --set submit.via=nobody --set "facts=$T/facts" -C "$2" --datasets list.txt \
        -- cat '{dataset}' >"$T/out" 2>"$T/err"
    got=$(sed -n 's/.*none of the \([0-9]*\) nodes that the job may go to.*facts.: \([a-z0-9]*\):.*/\1 \2/p' "$T/err" | head -n 1)
    if [ "$got" = "$1" ]; then ok "-C '$2': $1"; else not_ok "-C '$2': $1" "got '$got'" "$(cat "$T/err")"; fi
}
where '2 g1' 'a100'
where '1 h1' 'h100&cuda12'
where '2 g1' 'rack1|cuda11'
where '1 g2' 'h100|a100&cuda11'
where '2 g2' '(a100&cuda11)|h100'
where '3 g1' '[rack1|rack2]'
where '3 g1' '[rack1*1&rack2*2]'
where '2 g2' 'rack2*2'
where '1 g1' '(a100|h100)&(cuda12&rack1)'
tap 78 'a word that no node has' dry -C 'a100|b200'
has "$T/err" "no node has the feature 'b200'" 'is refused, as Slurm does'
tap 78 'words that no node has together' dry -C 'h100&cuda11'
has "$T/err" "no-node-fits: partition 'gpu': 0 of 3 nodes of partition 'gpu' can take a task, 1 is wanted" 'is refused'
has "$T/err" "g1 has features 'a100,cuda12,rack1', not 'h100&cuda11'" 'with the reason, node by node'
tap 0 'a constraint in a form that is not known' dry -C 'a100!'
lacks "$T/err" 'no-node-fits' 'is left to Slurm'

# what a node has
tap 78 'more GPUs than a node has' dry --gres=gpu:a100:3
has "$T/err" 'g1 and 1 more: each has 2 of 3 GRES gpu:a100; h1 has 0 of 3 GRES gpu:a100' 'is refused, equal reasons together'
tap 78 'a GPU of one type on a node of the other' dry --gres=gpu:h100:1 -C a100
has "$T/err" 'no-node-fits' 'is refused'
tap 78 'more CPUs' dry -c 65
has "$T/err" 'h1 has 64 of 65 CPUs' 'is refused'
tap 0 'as many as the largest has' dry -c 64
tap 78 'memory by CPU' dry -c 16 --mem-per-cpu=5G
has "$T/err" 'has 64000 of 81920 MiB' 'is multiplied'
tap 78 'more nodes than fit' dry -N 3 -C a100
has "$T/err" '2 of 3 nodes' 'is refused'
tap 0 'as many as fit' dry -N 2 -C a100
tap 78 'nothing left' dry -x g[1-2],h1
has "$T/err" 'g1 and 2 more: each is excluded' 'is refused'

# architectures
fatbin "$T/f.s" '2 90;1 90 8 4'
lib "$T/cuda/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
program "$T/app" 'int f(void);int main(void){return f();}' "$T/f.s" "$T/cuda/libcudart.so.12" '-Wl,-rpath,$ORIGIN/cuda'
app() { recon-submit --dry-run --set submit.via=nobody "$@" --datasets list.txt -- ./app '{dataset}'; }
map='architectures={ a100 = "8.0"; h100 = "9.0"; }'
tap 0 'a map of types' app --gres=gpu:1 --set "$map"
has "$T/out" '#SBATCH --exclude=g1,g2' 'keeps away from GPUs that the code does not fit'
has "$T/err" "2 of 3 nodes cannot run it by 'architectures' and are excluded (g1: arch-no-image" 'and says why'
tap 78 'only such GPUs' app --gres=gpu:a100:1 --set "$map"
has "$T/err" "none of the 2 nodes that the job may go to can run it, by 'architectures': g1: arch-no-image" 'is refused with the reason'
tap 0 'GPUs that it fits' app --gres=gpu:h100:1 --set "$map"
lacks "$T/out" '--exclude' 'excludes none'
sed -i 's/gpu:[ah]100:/gpu:/' conf/parts/nodes.conf
tap 0 'a map of features' app --gpus=1 --set "$map"
has "$T/out" '#SBATCH --exclude=g1,g2' 'serves where GRES have no types'
tap 0 'no GPU asked' app --set "$map"
lacks "$T/out" '--exclude' 'no question'
tap 64 'a number that is no capability' app --set 'architectures={ a100 = 8.0; }'
has "$T/err" 'wanted a compute capability in quotes as "9.0"' 'is refused'
finish

#!/bin/bash
# A libslurm of another version than recon was built for: the module does not load, Slurm's commands serve, and it is told once.
. "${abs_top_srcdir:?}/tests/lib.sh"
[ -e "$abs_top_builddir/lib/recon/sched/slurm.so" ] || skip_all 'built without libslurm'
cd "$T" || exit 99
unset ${!SLURM_*} ${!SBATCH_*}
export HOME=$T
mkdir -p p/bin p/lib/recon p/libexec
cp "$abs_top_builddir/bin/recon-submit" "$abs_top_builddir/bin/recon-launch" p/bin/
cp -r "$abs_top_builddir/lib/recon/sched" p/lib/recon/
cp -rL "$abs_top_builddir/share" p/share; cp -rL "$abs_top_builddir/libexec/recon" p/libexec/ 2>/dev/null
sed -i 's/libslurm\.so\.[0-9][0-9]/libslurm.so.99/' p/lib/recon/sched/slurm.so
printf '%s\n' ClusterName=x 'SlurmctldHost=nowhere(127.0.0.1)' SlurmctldPort=1 'NodeName=n1' 'PartitionName=p Nodes=n1 Default=YES' >slurm.conf
export SLURM_CONF=$T/slurm.conf
echo /etc >list.txt
tap 0 'a dry run' p/bin/recon-submit --dry-run --datasets list.txt -- cat '{dataset}'
has "$T/err" "libslurm is not the one that recon was built for, so Slurm's commands serve" 'is told'
has "$T/err" 'libslurm.so.99' 'with what is missing'
if [ "$(grep -c 'is not the one' "$T/err")" = 1 ]; then ok 'once'; else not_ok 'once' "$(cat "$T/err")"; fi
tap 69 'asked for by name' p/bin/recon-submit --set submit.via=api --datasets list.txt -- cat '{dataset}'
has "$T/err" "backend 'slurm' cannot be loaded" 'it is an error'
rm p/lib/recon/sched/slurm.so
tap 0 'a recon that was built without' p/bin/recon-submit --dry-run --datasets list.txt -- cat '{dataset}'
lacks "$T/err" 'built for' 'says nothing'
finish

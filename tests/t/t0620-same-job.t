#!/bin/bash
# A job submitted by libslurm and by sbatch is the same: scontrol show job, environment, umask, limits.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
[ -e "$abs_top_builddir/lib/recon/sched/slurm.so" ] || skip_all 'built without libslurm'
cluster=$abs_top_srcdir/tests/cluster/cluster
printf 'PropagateResourceLimits=ALL\n' >"$T/more.conf"
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
"$cluster" start --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo "leak:libslurm.so" >"$T/lsan" # answers that libslurm itself forgets
export LSAN_OPTIONS=suppressions=$T/lsan:print_suppressions=0
partitions() { for p in all gpu; do scontrol update PartitionName=$p State=$1; done; }

mkdir -p "$T/w/templates" "$T/out"
cd "$T/w" || exit 99
echo x >d1; echo x >d2; printf 'd1\nd2\n' >list.txt
# what a task sees before the script's own exports
cat >templates/default.sbatch <<END
#!/bin/bash
@DIRECTIVES@
{ env -0 | sort -z | tr '\0' '\n'; echo "umask \$(umask)"; ulimit -a; pwd; nice; } >"$T/part.\$SLURM_JOB_ID"
mv "$T/part.\$SLURM_JOB_ID" "$T/out/\$SLURM_JOB_NAME.\$SLURM_ARRAY_TASK_ID"
@ENVIRONMENT@
: @LAUNCH@
END

# Only what has to differ: ids, times, this submission's name and run directory, what the cluster chose for the task.
plain() { # plain RUN
    sed -E -e "s:$T/w/$1:RUN:g" -e 's/cat-[0-9a-f]{8}/NAME/g' \
        -e 's/(SubmitTime|EligibleTime|AccrueTime|LastSchedEval|StartTime|EndTime)=[^ ]+/\1=/g' \
        -e 's/(JobId|ArrayJobId)=[0-9]+/\1=ID/g' -e 's/Priority=42949[0-9]+/Priority=given/' \
        -e 's/^(SLURM_(ARRAY_)?JOB_?ID|SLURM_TASK_PID|SLURM_JOB_(START|END)_TIME)=.*/\1=/' \
        -e 's/^(HOSTNAME|SLURMD_NODENAME|SLURM_(JOB_)?NODELIST|SLURM_TOPOLOGY_ADDR|SLURM_JOB_GPUS|[A-Z_]*(DEVICES|ORDINAL|MASK))=.*/\1=/' \
        -e 's:/logs/[0-9]+_:/logs/ID_:' -e 's:spool/job[0-9]+:spool/job:g' -e 's:nodes/[a-z0-9]+/spool:nodes/N/spool:g' -e '/^_=/d'
}
cases=0
both() { # both NAME OPTION...: submits twice
    names[cases]=$1; shift
    for via in api sbatch; do
        run=$via.$cases
        id=$(recon-submit --parsable --run-dir $run --set retry.closing=false --set submit.via=$via --datasets list.txt "$@" -- cat '{dataset}' \
            2>"$T/err" | cut -f2)
        [ -n "$id" ] || { not_ok "${names[cases]}: submitted by $via" "$(cat "$T/err")"; continue; }
        scontrol show job "$id" | plain $run >"$T/show.$run"
    done
    if [ -s "$T/show.api.$cases" ] && diff "$T/show.api.$cases" "$T/show.sbatch.$cases" >"$T/d"; then
        ok "${names[cases]}: scontrol show job is the same"
    else not_ok "${names[cases]}: scontrol show job is the same" "$(cat "$T/d")"; fi
    cases=$((cases + 1))
}
partitions DOWN # what is submitted waits, so that it is looked at in one state
export MARK='two words' EMPTY=
umask 027
ulimit -S -n 512
both plain
both resources -p gpu --gres=gpu:a100:1 -c 2 --mem=1G -t 0:10 --comment='say "hi" # there' --nice=5 \
    --mail-type=END,FAIL --mail-user=me --signal=B:USR1@30 -C a100 --exclude=a2 --requeue
both shape -N 1 -n 2 --ntasks-per-node=2 --threads-per-core=1 --mem-per-cpu=100M --time-min=1 -t 5 --no-requeue
both gpus -p gpu --gpus-per-node=a100:1 --cpus-per-gpu=2
both nodelist -w c1 --exclusive --contiguous
both 'export NONE' --export=NONE
both 'export list' --export=MARK,OTHER=3
SBATCH_COMMENT=x SBATCH_EXPORT=NONE SBATCH_TIMELIMIT=7 both 'SBATCH_ variables' --qos=normal
SLURM_JOB_ID=99 SLURM_CPUS_PER_TASK=77 SLURM_PROCID=5 both 'from within a job'
n_run=$cases
both held --hold --priority=7 --time=1-0 --oversubscribe
both dependency --hold --dependency=afterany:1 --kill-on-invalid-dep=no
partitions UP
for i in $(seq 900); do [ "$(ls "$T/out" | wc -l)" -ge $((n_run * 4)) ] && break; sleep 0.1; done
for c in $(seq 0 $((n_run - 1))); do
    for via in api sbatch; do
        job=$(sed -n 's/^#SBATCH --job-name=//p' $via.$c/script.sbatch)
        cat "$T/out/$job.0" "$T/out/$job.1" 2>/dev/null | plain $via.$c >"$T/task.$via.$c"
    done
    if [ -s "$T/task.api.$c" ] && diff "$T/task.api.$c" "$T/task.sbatch.$c" >"$T/d"; then
        ok "${names[c]}: environment, umask and limits are the same"
    else not_ok "${names[c]}: environment, umask and limits are the same" "$(cat "$T/d")"; fi
done
has "$T/task.api.0" 'umask 0027' 'the umask of the submitting shell arrives'
has "$T/task.api.0" 'MARK=two words' 'and its environment'
grep -q '^open files.* 512$' "$T/task.api.0" && ok 'and its limits' || not_ok 'and its limits' "$(grep files "$T/task.api.0")"
lacks "$T/task.api.5" 'MARK=' 'nothing of the shell comes with --export=NONE'
has "$T/show.api.7" 'TimeLimit=00:07:00' 'SBATCH_TIMELIMIT counts'
lacks "$T/task.api.7" 'MARK=' 'and SBATCH_EXPORT'
lacks "$T/task.api.8" '=77' 'an outer job leaves nothing behind'
finish

#!/bin/bash
# Limits of Slurm's accounting and of MaxJobCount: what a task may never have is refused before it is queued; no more tasks are
# sent than are taken, the closing job sends the rest; what could not be asked is said.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd slurmdbd mariadbd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
[ -e "$abs_top_builddir/lib/recon/sched/slurm.so" ] || skip_all 'built without libslurm'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
printf '%s\n' AccountingStorageEnforce=associations,limits,qos MaxArraySize=50 MaxJobCount=200 MinJobAge=2 >"$T/more.conf"
"$cluster" start --accounting --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS=suppressions=$T/lsan:print_suppressions=0
{
    sacctmgr -i add account lab GrpSubmitJobs=40
    sacctmgr -i add account small parent=lab
    sacctmgr -i add qos short MaxWall=10 MaxTRESPerJob=cpu=2,gres/gpu=1 MaxSubmitJobsPerUser=12 MaxTRESPerUser=mem=2000
    sacctmgr -i add user root account=small qos=normal,short
    sacctmgr -i modify user root set defaultaccount=small
} >"$T/sacctmgr" 2>&1 || { cat "$T/sacctmgr"; exit 99; }
cd "$T" || exit 99
for i in $(seq 100); do echo /etc; done >list.txt
ask() { recon-submit --test-only "$@" --datasets list.txt -- true '{dataset}'; }
for i in $(seq 50); do ask 2>&1 | grep -q GrpSubmitJobs && break; sleep 0.2; done

tap 0 'limits of the default account' ask
has "$T/err" "GrpSubmitJobs of account 'lab' is 40" 'those of an account above are told'
tap 0 'of a QOS' ask -q short -t 5
has "$T/err" "MaxSubmitJobsPerUser of QOS 'short' is 12" 'are told'
no() { # no NAME TEXT OPTION...
    tap 78 "$1" ask -q short "${@:3}"
    has "$T/err" "$2" 'is refused before it is queued'
}
no 'more time' "a task asks for 11 minutes, QOS 'short' allows 10 (MaxWall)" -t 11
no 'more CPUs' "a task asks for 3 cpu, QOS 'short' allows 2 (MaxTRESPerJob)" -t 5 -c 3
no 'more GPUs' "a task asks for 2 gres/gpu, QOS 'short' allows 1 (MaxTRESPerJob)" -t 5 -p gpu --gres=gpu:a100:2
no 'more memory' "a task asks for 3072 mem, QOS 'short' allows 2000 (MaxTRESPerUser)" -t 5 --mem=3G
tap 0 'by the commands' ask --set submit.via=sbatch --set max_tasks=20
has "$T/err" 'not asked: limits of QOS and associations' 'they are not known, and it is said'

# how many tasks
send() { # send RUN OPTION...
    tap 0 "$1" recon-submit --parsable --hold --run-dir "$@" --datasets list.txt -- true '{dataset}'
}
queued() { squeue -h -r -o %i | wc -l; }
is() { if [ "$1" = "$2" ]; then ok "$3"; else not_ok "$3" "'$1', wanted '$2'" "$(squeue)" "$(cat "$T/err")"; fi; }
send one -t 5 -q short
is "$(queued)" 11 'as many datasets a task as fit MaxSubmitJobsPerUser with the closing job: 10 of 10 each, and 1'
tap 64 'no room' recon-submit --run-dir none -q short -t 5 --datasets list.txt -- true '{dataset}'
has "$T/err" "no task can be submitted now: MaxSubmitJobsPerUser of QOS 'short' is 12, and 11 are there" 'is told without asking Slurm'
recon-submit --cancel one 2>/dev/null
for i in $(seq 100); do [ "$(queued)" = 0 ] && break; sleep 0.1; done
send two --set datasets_per_task=1
is "$(queued)" 40 'of one a task what GrpSubmitJobs of the account takes, with the closing job'
has "$T/err" '39 of 100 datasets are sent for now, the closing job sends the rest' 'the rest is told'
[ "$(wc -l <two/submit.jsonl)" = 4 ] && ok 'no submission was refused' || not_ok 'no submission was refused' "$(cat two/submit.jsonl)"
recon-submit --cancel two 2>/dev/null
for i in $(seq 100); do [ "$(queued)" = 0 ] && break; sleep 0.1; done

# it ends by itself: 3 submissions of 39, 39, 22
tap 0 'a run over several fillings' recon-submit --parsable --run-dir three --set datasets_per_task=1 --datasets list.txt -- true '{dataset}'
recon-submit --watch=three >"$T/out" 2>"$T/err"
for i in $(seq 300); do grep -q '100 of 100 datasets done' "$T/err" && break; recon-submit --watch=three >"$T/out" 2>"$T/err"; sleep 0.2; done
has "$T/err" '100 of 100 datasets done, 0 failed' 'ends with all of them'
cat three/out/0/*/recon.json 2>/dev/null | wc -l >"$T/n"
is "$(ls -d three/out/0/[0-9]* | wc -l)" 100 'each once'

# MaxJobCount without accounting's bound
sacctmgr -i modify account lab set GrpSubmitJobs=-1 >/dev/null
for i in $(seq 50); do ask 2>&1 | grep -q GrpSubmitJobs || break; sleep 0.2; done
for i in $(seq 100); do [ "$(squeue -h -r -t all -o %i | wc -l)" = 0 ] && break; sleep 0.3; done
for i in $(seq 300); do echo /etc; done >list.txt
held=$(sbatch --parsable --hold --array=0-39 --wrap true)
start=$(date +%s)
send full --set datasets_per_task=1
is "$(($(date +%s) - start < 10))" 1 'a full controller is not asked again and again'
is "$(queued)" 199 'MaxJobCount 200 less the 40 that are there: 158 tasks and the closing job'
has "$T/err" '158 of 300 datasets are sent for now, the closing job sends the rest: MaxJobCount is 200, and 40 jobs are there' 'is told'
lacks full/submit.jsonl '"error"' 'no submission was refused'
finish

#!/bin/bash
# recon-submit on a throw-away cluster: every dataset done, also under --export=NONE and from a shell whose LD_LIBRARY_PATH
# leads to wrong libraries; refused nodes and --resume elsewhere; --watch, --cancel, --test-only; a controller that is away.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT

# a program whose library lies in the nodes' CUDA tree, which h1 lacks; a wrong one of the same name elsewhere
mkdir -p "$T/cuda/lib64" "$T/wrong" "$T/c/cuda" "$T/w"
echo 'const char *demo(void) { return "right"; }' >"$T/r.c"
echo 'const char *other(void) { return "wrong"; }' >"$T/x.c"
cat >"$T/p.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
const char *demo(void);
int main(int argc, char **argv)
{
    FILE *f = argc > 2 ? fopen(argv[2], "w") : stdout;
    fprintf(f, "%s %s\n", demo(), getenv("SLURMD_NODENAME"));
    return fclose(f);
}
END
CC=${CC:-cc}
$CC -shared -fPIC -Wl,-soname,libdemo.so.1 -o "$T/cuda/lib64/libdemo.so.1" "$T/r.c" &&
    $CC -shared -fPIC -Wl,-soname,libdemo.so.1 -o "$T/wrong/libdemo.so.1" "$T/x.c" &&
    $CC -o "$T/w/prog" "$T/p.c" "$T/cuda/lib64/libdemo.so.1" || skip_all 'no C compiler'
echo 'MessageTimeout=2' >"$T/more.conf"
"$cluster" start --conf "$T/more.conf" --cuda-tree "$T/cuda" --without-cuda h1 "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan" # answers that libslurm itself forgets
export LSAN_OPTIONS=suppressions=$T/lsan:print_suppressions=0
cd "$T/w" || exit 99
for i in 1 2 3 4 5 6; do echo $i >"d$i"; echo "d$i"; done >list.txt
mount --bind "$T/cuda" "$T/c/cuda" 2>/dev/null && trap 'umount "$T/c/cuda"; "$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
tap 0 'pin on the login node' env LD_LIBRARY_PATH="$T/c/cuda/lib64" recon-pin capture -o "$T/w/env.pin" ./prog

all_right() { # all_right RUN: 6 results by the right library
    right=$(cat "$1"/out/0/*/x 2>/dev/null | grep -c '^right')
    if [ "$right" = 6 ]; then ok "$2"; else not_ok "$2" "$right of 6" "$(tail -n 3 "$1"/logs/* "$T/err")"; fi
}
submit() { recon-submit --watch --set pin=env.pin --datasets list.txt "$@" -- ./prog '{dataset}' '{out}/x'; }
tap 0 'an array over the datasets' submit --run-dir plain --exclude=h1
all_right plain 'every dataset is done'
has "$T/out" "$T/w/plain " 'run directory and job are told'
grep -q '"backend":"slurm"' plain/submit.jsonl && ok 'by libslurm' || not_ok 'by libslurm' "$(cat plain/submit.jsonl)"
tap 0 'under --export=NONE' submit --run-dir none --exclude=h1 --export=NONE
all_right none 'every dataset is done'
LD_LIBRARY_PATH=$T/wrong tap 0 'from a shell that leads to wrong libraries' submit --run-dir wrong --exclude=h1 --set submit.via=sbatch
all_right wrong 'every dataset is done'
grep -q '"backend":"sbatch"' wrong/submit.jsonl && ok 'by sbatch' || not_ok 'by sbatch' "$(cat wrong/submit.jsonl)"

# a node that lacks the runtime: refused before exec, then elsewhere
tap 75 'on a node without the library' submit --run-dir lost -w h1
has "$T/err" '0 of 6 datasets done, 6 failed' 'no dataset is done'
cat lost/events/0/0/*.jsonl >"$T/events"
has "$T/events" '"rule":"lib-not-found"' 'for lib-not-found'
has "$T/events" "$T/c/cuda/lib64" 'with the path where it was looked for'
has "$T/events" '"status":"refused"' 'refused before it started'
has lost/bad-nodes.jsonl h1 'the node is noted'
tap 0 'resume with no try left' recon-submit --resume lost --set retry.node_unfit=0
has "$T/err" '6 datasets left alone: met an unfit node more than retry.node_unfit = 0 times' 'leaves them alone'
tap 0 'resume' recon-submit --watch --resume lost --set sbatch.nodelist=false
has "$(ls lost/sub/*.map | sort -V | tail -1 | sed s/map$/sbatch/)" '#SBATCH --exclude=h1' 'goes around the bad node'
all_right lost 'and every dataset is done'

# what auto chooses, and what the cluster says
tap 0 'a directive that only sbatch reads' recon-submit --dry-run --begin=now+1hour --datasets list.txt -- cat '{dataset}'
has "$T/err" "by Slurm's commands" 'goes by sbatch'
tap 0 'one that libslurm can say' recon-submit --dry-run --mem=1G --datasets list.txt -- cat '{dataset}'
has "$T/err" 'by libslurm' 'goes by libslurm'
for via in api sbatch; do
    tap 0 "test-only by $via" recon-submit --test-only --set submit.via=$via -p gpu --gres=gpu:h100:1 --datasets list.txt -- cat '{dataset}'
    has "$T/out" h1 'names the node'
    tap 64 "an impossible job by $via" recon-submit --run-dir no --set submit.via=$via -p gpu --reservation=none --datasets list.txt -- cat '{dataset}'
    has "$T/err" 'Slurm says: Requested reservation is invalid' "is refused in Slurm's words"
    one_line "$T/err" 'in one line'
    if [ -e no ]; then not_ok 'and leaves no run'; else ok 'and leaves no run'; fi
    tap 78 "one that no node can take, by $via" recon-submit --run-dir no --set submit.via=$via -p gpu --gres=gpu:h100:9 --datasets list.txt -- cat '{dataset}'
    has "$T/err" 'h1 has 4 of 9 GRES gpu:h100' 'is refused before it is sent'
    tap 78 "an unknown partition by $via" recon-submit --set submit.via=$via -p gpus --datasets list.txt -- cat '{dataset}'
    has "$T/err" 'partition-unknown' 'is refused before it is sent'
    tap 0 "held, by $via" recon-submit --parsable --hold --run-dir held.$via --set submit.via=$via --datasets list.txt -- cat '{dataset}'
    id=$(cut -f2 "$T/out")
    tap 0 'resume while it waits' recon-submit --resume held.$via
    has "$T/err" 'left alone: queued or running' 'leaves it alone'
    timeout 10 recon-submit --watch=held.$via >"$T/out" 2>"$T/err" & pid=$!
    for i in $(seq 30); do sleep 0.3; kill -INT $pid 2>/dev/null || break; done
    wait $pid; got=$?
    if [ $got = 0 ]; then ok 'watch, and Ctrl-C'; else not_ok 'watch, and Ctrl-C' "status $got"; fi
    has "$T/err" 'detached, the job goes on' 'detaches'
    tap 0 'cancel' recon-submit --cancel held.$via
    sleep 0.3
    if [ -z "$(squeue -h -j "$id" 2>/dev/null)" ]; then ok 'and it is gone'; else not_ok 'and it is gone' "$(squeue)"; fi
done
# constraints mean what Slurm takes them for
for c in a100 'a100&cuda12' 'a100|h100' 'h100|a100&cuda11' 'a100&cuda11|h100' '(a100|h100)&cuda12' 'h100|(a100&cuda11)' '[a100|h100]' \
    '(a100&cuda11)|(h100&cuda12)' 'a100&b200' 'a100|b200'; do
    slurm='' ours=''
    for node in a1 a2 h1; do
        sbatch --test-only -p gpu -w $node -C "$c" --wrap true >"$T/words" 2>&1 && slurm="$slurm $node"
        recon-submit --dry-run -p gpu -w $node -C "$c" --datasets list.txt -- cat '{dataset}' >"$T/out" 2>"$T/err" && ours="$ours $node"
    done
    if [ "$slurm" = "$ours" ]; then ok "-C '$c':$ours"; else not_ok "-C '$c'" "Slurm:$slurm, recon-submit:$ours" "$(cat "$T/words")"; fi
done
# an intent without a result: the job is found by its name
id=$(recon-submit --parsable --hold --run-dir torn --datasets list.txt -- cat '{dataset}' | cut -f2)
grep -v '"type":"result"' torn/submit.jsonl >"$T/s" && cp "$T/s" torn/submit.jsonl
tap 0 'resume after a torn submission' recon-submit --resume torn
has torn/submit.jsonl "\"job_id\":\"$id\"" 'finds the job by its name'
has "$T/err" '6 datasets left alone: queued or running' 'and does not submit it twice'
recon-submit --cancel torn 2>/dev/null

# many datasets: as many a task as fit
for i in $(seq 2500); do echo d1; done >many.txt
tap 0 'max_tasks' recon-submit --dry-run --set max_tasks=100 --datasets many.txt -- cat '{dataset}'
has "$T/out" '#SBATCH --array=0-99' 'is kept'
tap 0 'MaxArraySize of the cluster' recon-submit --dry-run --datasets many.txt -- cat '{dataset}'
has "$T/out" '#SBATCH --array=0-2499' 'bounds, nothing else'
head -n 5 list.txt >five.txt
tap 0 'k datasets a task in several submissions' recon-submit --watch --run-dir parts --set pin=env.pin --set max_tasks=2 \
    --set datasets_per_task=2 --exclude=h1 --datasets five.txt -- ./prog '{dataset}' '{out}/x'
has parts/sub/1.sbatch '--dependency=afterany:' 'one after the other'
has "$T/err" '5 of 5 datasets done' 'to the end'

# a job that is asked about after the controller went
kill "$(cat "$T/c/run/slurmctld.pid")"
for i in $(seq 100); do scontrol ping 2>/dev/null | grep -q DOWN && break; sleep 0.05; done
for via in auto api sbatch; do
    tap 69 "no controller, by $via" recon-submit --run-dir away --set submit.via=$via --datasets list.txt -- cat '{dataset}'
    has "$T/err" 'localhost(127.0.0.1):' 'tells where it should be'
    one_line "$T/err" 'in one line'
    if [ -e away ]; then not_ok 'leaves no run'; else ok 'leaves no run'; fi
done
tap 69 'resume without a controller' recon-submit --resume torn
has "$T/err" 'whether job' 'does not guess'
finish

#!/bin/bash
# A run ends by itself: a node that turns unfit half-way is left and remembered, its datasets are done elsewhere by the
# closing job, without anybody watching; --watch does the same; what fails for its own reasons is not tried again; an array
# is held when two nodes agree that no node can do it.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT

# a program whose library lies in the nodes' CUDA tree; each node has its own copy of it, so that one can lose it
mkdir -p "$T/cuda/lib64" "$T/c/cuda" "$T/w"
for i in a1 a2 h1 c1; do mkdir -p "$T/c/nodes/$i/cuda/lib64"; done
echo 'const char *demo(void) { return "right"; }' >"$T/r.c"
cat >"$T/p.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
const char *demo(void);
int main(int argc, char **argv)
{
    FILE *f = fopen(argv[2], "w");
    usleep(200000);
    if (strstr(argv[1], "bad"))
        return 3;
    fprintf(f, "%s %s\n", demo(), getenv("SLURMD_NODENAME"));
    return fclose(f);
}
END
CC=${CC:-cc}
$CC -shared -fPIC -Wl,-soname,libdemo.so.1 -o "$T/cuda/lib64/libdemo.so.1" "$T/r.c" &&
    $CC -o "$T/w/prog" "$T/p.c" "$T/cuda/lib64/libdemo.so.1" || skip_all 'no C compiler'
for i in a1 a2 h1 c1; do cp "$T/cuda/lib64/libdemo.so.1" "$T/c/nodes/$i/cuda/lib64/"; done
cp -r "$T/cuda/lib64" "$T/c/cuda/" # for the login node's own view
"$cluster" start "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan" # answers that libslurm itself forgets
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
cd "$T/w" || exit 99
for i in $(seq 40); do echo "d$i"; done >list.txt
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
LD_LIBRARY_PATH=$T/c/cuda/lib64 recon-pin capture -o env.pin -- ./prog || exit 99

idle() { # until no job is queued: the run has ended
    for i in $(seq 300); do [ -z "$(squeue -h -o %i 2>/dev/null)" ] && return 0; sleep 0.2; done
    squeue >&2
    return 1
}
result_of() { cat "$1"/out/0/*/x 2>/dev/null | wc -l; }
finds() { find "$1" -path "$1/events/*" -name '*.jsonl' -exec cat {} +; }

tap 0 'a run of forty over four nodes' recon-submit --parsable --run-dir half --set pin=env.pin -t 5 --datasets list.txt -- ./prog '{dataset}' '{out}/x'
for i in $(seq 200); do [ "$(result_of half)" -ge 8 ] && break; sleep 0.05; done
rm "$T/c/nodes/h1/cuda/lib64/libdemo.so.1"
tap 0 'h1 loses its library half-way; the run ends' idle
if grep -q '"status":"refused"' <(finds half); then ok 'tasks were refused there'; else not_ok 'tasks were refused there' "$(squeue; ls half/events/*/0)"; fi
n_done=$(result_of half)
if [ "$n_done" = 40 ]; then ok 'every dataset is done, with nobody watching'
else not_ok 'every dataset is done' "$n_done" "$(cat half/submit.jsonl half/logs/closing*; ls half/sub)"; fi
tap 0 'report' recon-report --format json half
has half/bad-nodes.jsonl '"node":"h1"' 'the node is remembered'
has half/sub/2.sbatch '#SBATCH --exclude=h1' 'and kept away from'
if finds half | grep '"type":"attempt"' | grep '"sub":2' | grep -q '"node":"h1"'; then not_ok 'nothing goes back to it'; else ok 'nothing goes back to it'; fi
cat half/logs/closing-*.log >closing.log
has closing.log 'nothing to do' 'the last closing job found nothing to do'
tap 0 'resume afterwards' recon-submit --resume half
has "$T/err" 'nothing to do' 'has nothing to do'
same_count=$(finds half | grep -c '"type":"dataset".*"status":"done"')
if [ "$same_count" = 40 ]; then ok 'each was done once'; else not_ok 'each was done once' "$same_count"; fi

# without a closing job the one who watches sends elsewhere
tap 0 'watch does the same' recon-submit --watch --run-dir watched --set pin=env.pin --set retry.closing=false -t 5 --datasets list.txt -- ./prog '{dataset}' '{out}/x'
has "$T/err" 'sent again, around the bad nodes' 'says so'
has "$T/err" '40 of 40 datasets done' 'to the end'
if grep -q '"tasks":0' watched/submit.jsonl; then not_ok 'without a closing job' "$(cat watched/submit.jsonl)"; else ok 'without a closing job'; fi

# a dataset that fails for its own reasons
printf 'd1\nbad\nd2\n' >three.txt
tap 3 'a program that fails' recon-submit --watch --run-dir own --set pin=env.pin -x h1 -t 5 --datasets three.txt -- ./prog '{dataset}' '{out}/x'
has "$T/err" '2 of 3 datasets done, 1 failed' 'the others are done'
cat own/logs/closing-*.log >closing.log
has closing.log '1 dataset not tried again: failed of itself' 'and it is not tried again'
tap 0 'ended' idle

# retry.node_unfit: no node is left for it, and the end is told
for i in a1 a2; do rm "$T/c/nodes/$i/cuda/lib64/libdemo.so.1"; done
tap 75 'nodes that are all unfit' recon-submit --watch --run-dir none --set pin=env.pin --set retry.node_unfit=1 -p gpu -t 5 --datasets three.txt -- ./prog '{dataset}' '{out}/x'
tap 0 'ended' idle
subs=$(ls none/sub/*.map | wc -l)
if [ "$subs" -le 2 ]; then ok 'at most one try more'; else not_ok 'at most one try more' "$(ls none/sub)"; fi

# two nodes agree on a finding of scope job: held, not cancelled
cp -r "$T/c/cuda/lib64/." "$T/c/nodes/a1/cuda/lib64/"; cp -r "$T/c/cuda/lib64/." "$T/c/nodes/a2/cuda/lib64/"; cp -r "$T/c/cuda/lib64/." "$T/c/nodes/h1/cuda/lib64/"
for i in $(seq 60); do echo "d$i"; done >many.txt
cp prog gone; LD_LIBRARY_PATH=$T/c/cuda/lib64 recon-pin capture -o gone.pin -- ./gone || exit 99
sed 's/libdemo\.so\.1/libdemu.so.1/g' gone >gone2 && chmod +x gone2 && mv gone2 gone # needs what is nowhere now
id=$(recon-submit --parsable --run-dir held --set pin=gone.pin -t 5 --datasets many.txt -- ./gone '{dataset}' '{out}/x' | cut -f2)
for i in $(seq 100); do squeue -h -t PD -o %r -j "$id" | grep -q JobHeldUser && break; sleep 0.1; done
if grep -q job-finding held/bad-nodes.jsonl 2>/dev/null; then
    if squeue -h -t PD -o %r -j "$id" | grep -q JobHeldUser; then ok 'the array is held'
    else not_ok 'the array is held' "$(squeue)" "$(cat held/bad-nodes.jsonl | head -5)"; fi
    tap 78 'watching a held run' recon-submit --watch=held
    has "$T/err" 'two nodes agree on lib-not-found: libdemu.so.1' 'says why'
else not_ok 'the array is held' "$(cat held/logs/* | head -20)" "$(cat held/bad-nodes.jsonl)"; fi
tap 0 'cancel' recon-submit --cancel held
tap 0 'and it is gone' idle
finish

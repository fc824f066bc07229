#!/bin/bash
# A controller that is killed while a run is submitted: before it heard of it, while it held the request, and right after it
# took the job, before its state was saved. Either nothing was submitted and that is told, or the run goes on to its end.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
echo 'MessageTimeout=2' >"$T/more.conf"
"$cluster" start --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
mkdir "$T/w" && cd "$T/w" || exit 99
for i in 1 2 3 4 5 6; do echo "d$i"; done >list.txt
printf '#!/bin/sh\nsleep 0.5; echo "$1" >"$2/x"\n' >prog; chmod 755 prog
ctld() { cat "$T/c/run/slurmctld.pid"; }
restart_ctld() { slurmctld -c -f "$SLURM_CONF" >/dev/null 2>&1 </dev/null; } # it knows nothing of before; numbers begin anew
written() { for i in $(seq 2000); do grep -qs "$1" "$run/submit.jsonl" && return 0; sleep 0.002; done; return 1; }
published() { grep -h '"type":"output"' "$run"/events/*/0/*.jsonl 2>/dev/null | wc -l; }

made() { SECONDS=0; until [ -d "$run" ] || [ $SECONDS -gt 20 ]; do :; done; } # no process is started: milliseconds count
before() { pid=$(ctld); made; kill -9 "$pid"; sleep 1; restart_ctld; }
holding() { pid=$(ctld); made; kill -STOP "$pid"; sleep 1; kill -9 "$pid"; sleep 0.3; restart_ctld; }
after() { written job_id; kill -9 "$(ctld)"; sleep 0.3; restart_ctld; }
for run in before.api holding.sbatch after.api after.sbatch; do
    how=${run%.*} via=${run#*.}
    $how & other=$!
    recon-submit --run-dir "$run" --set submit.via=$via --set retry.closing=false -t 5 --datasets list.txt -- ./prog '{dataset}' '{out}' \
        >"$T/out" 2>"$T/err"; got=$?
    wait $other
    for i in $(seq 100); do scontrol ping 2>/dev/null | grep -q UP && break; sleep 0.05; done
    case $got in
    0) ok "$how, by $via: submitted" ;;
    69) has "$T/err" 'recon-submit: ' "$how, by $via: not submitted, and told: $(head -c 300 "$T/err" | tail -n 1)" ;;
    *) not_ok "$how, by $via" "status $got" "$(cat "$T/err")" ;;
    esac
    if [ ! -e "$run" ]; then # nothing was taken, nothing is left: once more
        tap 0 'once more' recon-submit --run-dir "$run" --set submit.via=$via -t 5 --datasets list.txt -- ./prog '{dataset}' '{out}'
    fi
    tap 0 'the run ends well' timeout 60 recon-submit --watch --resume "$run"
    if [ "$(published)" = 6 ] && [ "$(ls -d "$run"/out/0/[0-9]* | wc -l)" = 6 ]; then ok 'each dataset is published once'
    else not_ok 'each dataset is published once' "$(published)" "$(cat "$run/submit.jsonl")" "$(squeue -t all)"; fi
    # what the controller holds of it beyond that is nothing
    if [ -z "$(squeue -h -o %i)" ]; then ok 'and nothing is queued'; else not_ok 'and nothing is queued' "$(squeue)"; fi
done

# watched all the while: the controller forgets the job before it started
run=watched
(written job_id; kill -9 "$(ctld)"; sleep 0.3; restart_ctld) & other=$!
tap 0 'a watched run whose job the controller forgot ends well' timeout 90 recon-submit --watch --run-dir watched -t 5 --datasets list.txt -- ./prog '{dataset}' '{out}'
wait $other
[ "$got" = 0 ] || { cat watched/submit.jsonl; squeue -t all; } | sed 's/^/# /'
if [ "$(published)" = 6 ]; then ok 'each dataset is published once'; else not_ok 'each dataset is published once' "$(published)"; fi
finish

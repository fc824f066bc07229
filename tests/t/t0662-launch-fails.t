#!/bin/bash
# A launch that fails before the launcher can write anything: a node whose program folder or run directory is not there.
# The run ends by itself elsewhere and remembers the node. What somebody cancelled while it waited is not sent again.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
"$cluster" start "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
mkdir "$T/w" && cd "$T/w" || exit 99
until_() { for i in $(seq "${2:-300}"); do eval "$1" && return 0; sleep 0.1; done; return 1; }
idle() { until_ '[ -z "$(squeue -h -o %i 2>/dev/null)" ]'; }
results() { ls -d "$1"/out/0/[0-9]* 2>/dev/null | wc -l; }
printf '#!/bin/sh\nsleep 0.3; echo "$SLURMD_NODENAME" >"$2/x"\n' >prog; chmod 755 prog

# on h1 the run directory is an empty folder, as where a file system is not mounted
for i in $(seq 24); do echo "d$i"; done >list.txt
for via in api sbatch; do
    mkdir "runs.$via"
    pid=$(cat "$T/c/run/slurmd.h1.pid")
    nsenter -t "$pid" -m mount -t tmpfs none "$T/w/runs.$via"
    tap 0 "a node without the run directory, by $via" recon-submit --run-dir "$T/w/runs.$via/run" --set submit.via=$via -p gpu -t 5 \
        --datasets list.txt -- "$T/w/prog" '{dataset}' '{out}'
    tap 0 'the run ends' idle
    if [ "$(results runs.$via/run)" = 24 ]; then ok 'every dataset is done, with nobody watching'
    else not_ok 'every dataset is done' "$(results runs.$via/run)" "$(ls runs.$via/run/sub; cat runs.$via/run/submit.jsonl runs.$via/run/logs/*)"; fi
    if [ "$(ls runs.$via/run/sub/*.map | wc -l)" -ge 2 ]; then ok "what failed there was sent again"; else not_ok "was sent again" "$(ls runs.$via/run/sub)"; fi
    has runs.$via/run/bad-nodes.jsonl '"node":"h1","rule":"launch-failed"' 'the node is remembered'
done

# cancelled by hand while it waits
head -n 3 list.txt >three.txt
id=$(recon-submit --parsable --run-dir byhand --hold --datasets three.txt -- "$T/w/prog" '{dataset}' '{out}' | cut -f2)
scancel "${id}_1"
scontrol release "$id"
tap 0 'one of three is cancelled while it waits' idle
if [ "$(results byhand)" = 2 ] && [ "$(ls byhand/sub/*.map | wc -l)" = 1 ]; then ok 'it is not sent again'
else not_ok 'it is not sent again' "$(results byhand)" "$(ls byhand/sub; cat byhand/logs/closing*)"; fi
finish

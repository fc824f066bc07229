#!/bin/bash
# The run directory on a slow file system: each call takes some milliseconds, as over a busy network. Every dataset is done
# once, and a task that is killed is found lost. SLOW_MS and SLOW_DATASETS make it slower and larger.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
[ -c /dev/fuse ] && /usr/bin/python3 -c 'import fusepy' 2>/dev/null || skip_all 'no FUSE for Python here (python3-fusepy)'
cluster=$abs_top_srcdir/tests/cluster/cluster
ms=${SLOW_MS:-5} many=${SLOW_DATASETS:-12}
mkdir "$T/real" "$T/slow" "$T/w"
"$abs_top_srcdir/tests/cluster/slowfs" "$T/real" "$T/slow" "$ms" >"$T/fs.log" 2>&1 & fs=$!
trap '"$cluster" stop "$T/c"; umount -l "$T/slow" 2>/dev/null; kill $fs 2>/dev/null; chmod -R u+w "$T"; rm -rf "$T"' EXIT
for i in $(seq 100); do mountpoint -q "$T/slow" && break; sleep 0.05; done
mountpoint -q "$T/slow" || skip_all "FUSE does not mount here: $(tail -n 1 "$T/fs.log")"
"$cluster" start "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
cd "$T/w" || exit 99
seq -f 'd%g' "$many" >list.txt
printf '#!/bin/sh\necho "$1" >"$2/x"\n' >prog; chmod 755 prog
t0=$(date +%s%N)
tap 0 "$many datasets, $ms ms a call" timeout 300 recon-submit --watch --run-dir "$T/slow/run" --set datasets_per_task=4 -t 5 \
    --datasets list.txt -- "$T/w/prog" '{dataset}' '{out}'
echo "# $((($(date +%s%N) - t0) / 1000000)) ms"
has "$T/err" "$many of $many datasets done" 'are done'
outputs=$(grep -h '"type":"output"' "$T"/real/run/events/*/0/*.jsonl | wc -l)
if [ "$outputs" = "$many" ] && [ "$(ls -d "$T"/real/run/out/0/[0-9]* | wc -l)" = "$many" ]; then ok 'each is published once'; else not_ok 'each is published once' "$outputs"; fi
tap 0 'report' recon-report --format json "$T/slow/run"
tap 0 'nothing is left to do' recon-submit --resume "$T/slow/run"
has "$T/err" 'nothing to do' 'all results are read again and good'

# a task is killed with its launcher: lost, and sent again
printf '#!/bin/sh\necho "$1" >"$2/x"\n[ "$RECON_SUB" != 0 ] || { : >%s/up; sleep 60; }\n' "$T/w" >slow; chmod 755 slow
head -n 1 list.txt >one.txt
recon-submit --run-dir "$T/slow/lost" -t 5 --datasets one.txt -- "$T/w/slow" '{dataset}' '{out}' >"$T/out" 2>"$T/err"
for i in $(seq 200); do [ -e up ] && break; sleep 0.1; done
kill -9 $(pgrep -f "recon-launch.*$T/slow/lost") 2>/dev/null
tap 0 'a killed launcher: its dataset is sent again' timeout 60 recon-submit --watch="$T/slow/lost"
if [ "$(ls "$T/real/lost/out/0" -A)" = 0 ] && [ "$(ls "$T"/real/lost/sub/*.map | wc -l)" = 2 ]; then ok 'it is done once, and no work folder is left'
else not_ok 'it is done once' "$(ls -A "$T/real/lost/out/0"; ls "$T/real/lost/sub"; cat "$T/err")"; fi
finish

#!/bin/bash
# Failures on a cluster, each ending with every dataset done once or failed with its reason: a controller that hangs
# during the submission, one that is killed while a run is watched, a slurmd that is killed, a requeue by an admin, a task
# cancelled by hand, a full run directory, a user other than root.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
mkdir -p "$T/small" "$T/w"
mounted=
mount -t tmpfs -o size=512k none "$T/small" 2>/dev/null && mounted=1
trap '"$cluster" stop "$T/c"; [ -z "$mounted" ] || umount -l "$T/small"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
chmod 755 "$T"
echo 'MessageTimeout=2' >"$T/more.conf"
"$cluster" start --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
cd "$T/w" || exit 99
for i in 1 2 3 4 5 6; do echo "d$i"; done >list.txt
head -n 2 list.txt >two.txt
printf '#!/bin/sh\nsleep ${2:-0}\n' >nap; chmod 755 nap
ctld() { cat "$T/c/run/slurmctld.pid"; }
restart_ctld() { slurmctld -f "$SLURM_CONF" >/dev/null 2>&1 </dev/null; }
until_() { for i in $(seq "${2:-150}"); do eval "$1" && return 0; sleep 0.1; done; return 1; }
done_of() { find "$1/events" -name '*.jsonl' -exec cat {} + 2>/dev/null | grep -c '"type":"dataset".*"status":"done"'; }
jobs_named() { squeue -h -r -t all -o %j | grep -c "^$1"; }
once() { if [ "$(done_of "$1")" = "$2" ]; then ok "$3: each is done once"; else not_ok "$3: each is done once" "$(done_of "$1")" "$(cat "$1/submit.jsonl")" "$(squeue -a -t all)"; fi; }

# a controller that hangs while the job is sent
for via in api sbatch; do
    recon-submit --dry-run --set submit.via=$via --datasets list.txt -- cat '{dataset}' >/dev/null 2>&1
    pid=$(ctld)
    (for i in $(seq 200); do [ -s hung.$via/submit.jsonl ] && break; sleep 0.002; done; kill -STOP "$pid"; sleep 7; kill -CONT "$pid") &
    recon-submit --hold --run-dir hung.$via --set submit.via=$via --set retry.closing=false --datasets list.txt -- true '{dataset}' >"$T/out" 2>"$T/err"
    got=$?
    wait
    sleep 1
    [ -d hung.$via ] && { recon-submit --resume hung.$via >"$T/out2" 2>"$T/err2"; got2=$?; }
    jobs=$(squeue -h -t all -o %F -n "$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p' hung.$via/submit.jsonl | head -n 1)" | sort -u | wc -l)
    all=$(squeue -h -t all -o '%F %j' | sort -u | grep -c "^[0-9]* true-$(sed -n 's/.*"name":"true-\([0-9a-f]*\)\..*/\1/p' hung.$via/submit.jsonl | head -n 1)")
    if [ "$all" = 1 ] && [ "$jobs" = 1 ]; then ok "a controller that hangs, by $via ($got): one job, not two"
    else not_ok "a controller that hangs, by $via: one job" "status $got $got2, $jobs by name, $all in all" "$(cat "$T/err" "$T/err2" hung.$via/submit.jsonl)"; fi
    recon-submit --cancel hung.$via >/dev/null 2>&1
done

# a controller that is killed and comes back while a run is watched
recon-submit --watch --run-dir killed -t 5 --datasets list.txt -- ./nap '{dataset}' 2 >"$T/out" 2>"$T/err" & w=$!
until_ '[ "$(find killed/events -name "*.jsonl" 2>/dev/null | wc -l)" -ge 3 ]'
sleep 6 # it saves its state every five seconds
kill -9 "$(ctld)"; sleep 1; restart_ctld
wait $w; got=$?
if [ $got = 0 ]; then ok 'a controller that is killed while a run is watched'; else not_ok 'a controller that is killed' "status $got" "$(cat "$T/err")"; fi
once killed 6 'killed'

# a slurmd that is killed: its task lives on, and ends when it is back
recon-submit --run-dir slurmd -w c1 -t 5 --datasets two.txt -- ./nap '{dataset}' 2 >"$T/out" 2>"$T/err"
until_ '[ -n "$(find slurmd/events -name "*.jsonl" 2>/dev/null)" ]'
kill -9 "$(cat "$T/c/run/slurmd.c1.pid")"
until_ '[ "$(done_of slurmd)" -ge 1 ]' 100
once_before=$(done_of slurmd)
if [ "$once_before" -ge 1 ]; then ok 'a slurmd that is killed: what runs goes on to its end'; else not_ok 'a slurmd that is killed' "$(squeue)"; fi
"$cluster" restart "$T/c" c1
tap 0 'it is started again: the run ends well' timeout 60 recon-submit --watch=slurmd
once slurmd 2 'slurmd'

# a requeue by an admin
id=$(recon-submit --parsable --run-dir requeued -x c1 -t 5 --datasets two.txt -- ./nap '{dataset}' 1 | cut -f2)
until_ '[ "$(find requeued/events -name "*.jsonl" 2>/dev/null | wc -l)" -ge 2 ]'
scontrol requeue "${id}_0"
timeout 60 recon-submit --watch=requeued >"$T/out" 2>"$T/err"; got=$?
if [ $got = 0 ] && [ -n "$(find requeued/events -name '0.1.jsonl')" ]; then ok 'a requeue by an admin: a second attempt ends it'
else not_ok 'a requeue by an admin' "status $got" "$(cat "$T/err"; find requeued/events)"; fi

# a task cancelled by hand
id=$(recon-submit --parsable --run-dir byhand -x c1 -t 5 --datasets two.txt -- ./nap '{dataset}' 3 | cut -f2)
until_ '[ "$(find byhand/events -name "*.jsonl" 2>/dev/null | wc -l)" -ge 2 ]'
scancel "${id}_1"
timeout 60 recon-submit --watch=byhand >"$T/out" 2>"$T/err"; got=$?
if [ $got != 0 ]; then ok "a task cancelled by hand: the run does not end well ($got)"; else not_ok 'a task cancelled by hand' "$(cat "$T/err")"; fi
has "$T/err" '1 of 2 datasets done' 'the other is done'
if [ "$(ls byhand/sub/*.map | wc -l)" = 1 ]; then ok 'and the run does not send it again'; else not_ok 'is not sent again' "$(ls byhand/sub)"; fi

# a full run directory
if [ -n "$mounted" ]; then
    recon-submit --hold --parsable --run-dir "$T/small/full" -x c1 -t 5 --datasets two.txt -- cp /bin/sh '{out}/x' >"$T/out" 2>"$T/err"
    id=$(cut -f2 "$T/out")
    head -c 1m /dev/zero >"$T/small/fill" 2>/dev/null
    scontrol release "$id"
    timeout 60 recon-submit --watch="$T/small/full" >"$T/out" 2>"$T/err"; got=$?
    if [ $got = 75 ]; then ok 'a full run directory: the run ends, not well'; else not_ok 'a full run directory' "status $got" "$(cat "$T/err")"; fi
    has "$T/err" 'ended before the launcher wrote anything (Slurm: ' 'and it says why'
    if ls "$T/small/full/out/0/0" >/dev/null 2>&1; then not_ok 'nothing looks whole'; else ok 'nothing looks whole'; fi
    recon-submit --cancel "$T/small/full" >/dev/null 2>&1
    rm -f "$T/small/fill"
    tap 0 'with room again' timeout 60 recon-submit --watch --resume "$T/small/full" --set 'program=["/bin/true","{dataset}"]'
    [ "$got" = 0 ] || { squeue -o '%i %T %r %N'; sinfo -N -o '%N %T %E'; cat "$T/small/full/logs/"*; } | sed 's/^/# /'
else
    skip 'a full run directory: no tmpfs may be mounted here'
fi

# a user other than root
if command -v setpriv >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$(command -v recon-submit)"; then
    mkdir "$T/user"; cp list.txt "$T/user/"; chown -R 65534:65534 "$T/user"; cd "$T/user" || exit 99
    tap 0 'a user other than root' env HOME="$T/user" USER=nobody setpriv --reuid=65534 --regid=65534 --clear-groups \
        timeout 60 recon-submit --watch --run-dir mine -x c1 -t 5 --datasets list.txt -- true '{dataset}'
    [ "$got" = 0 ] || cat mine/logs/* | head -n 5 | sed 's/^/# /'
    if grep -q 'root' <(stat -c %U mine mine/submit.jsonl mine/events/0/0/*); then not_ok 'what is written is the user'"'"'s'; else ok 'what is written is the user'"'"'s'; fi
else
    skip 'a user other than root: the programs are where nobody else may read'
fi
finish

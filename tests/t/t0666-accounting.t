#!/bin/bash
# With slurmdbd: a run goes to its end and stands in the accounts; limits of a QOS that are enforced; slurmdbd away.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch slurmdbd mariadbd mariadb-install-db; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
echo 'AccountingStorageEnforce=limits,qos' >"$T/more.conf"
"$cluster" start --accounting --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
mkdir "$T/w" && cd "$T/w" || exit 99
seq -f 'd%g' 40 >list.txt
head -n 8 list.txt >few.txt
printf '#!/bin/sh\necho "$1" >"$2/x"\n' >prog; chmod 755 prog
run() { d=$1; shift; timeout 90 recon-submit --watch --run-dir "$d" -t 5 "$@" -- ./prog '{dataset}' '{out}'; }
once() { # once RUN N 'name'
    if [ "$(grep -h '"type":"output"' "$1"/events/*/0/*.jsonl | wc -l)" = "$2" ] && [ "$(ls -d "$1"/out/0/[0-9]* | wc -l)" = "$2" ]; then ok "$3"
    else not_ok "$3" "$(ls "$1/out/0")"; fi
}

tap 0 'a run where slurmdbd keeps accounts' run plain --datasets few.txt
once plain 8 'each dataset is published once'
id=$(sed -n 's/.*"sub":0,"job_id":"\([0-9]*\)".*/\1/p' plain/submit.jsonl)
for i in $(seq 100); do [ "$(sacct -n -X -j "$id" -o State -P | grep -c COMPLETED)" = 8 ] && break; sleep 0.1; done
if [ "$(sacct -n -X -j "$id" -o State -P | grep -c COMPLETED)" = 8 ]; then ok 'and its eight tasks stand in the accounts'; else not_ok 'stand in the accounts' "$(sacct -X)"; fi

sacctmgr -i modify qos normal set MaxSubmitJobsPerUser=20 >/dev/null
run whole --datasets list.txt >"$T/out" 2>"$T/err"; got=$?
if [ $got = 0 ]; then once whole 40 'more datasets than a QOS lets one submit: fewer tasks, each dataset once'
elif [ ! -e whole ] && grep -q 'QOS' "$T/err"; then ok "more datasets than a QOS lets one submit: refused in Slurm's words ($got)"
else not_ok 'more datasets than a QOS lets one submit' "$got" "$(cat "$T/err")"; fi
tap 0 'with max_tasks within the limit' run fits --set max_tasks=15 --datasets list.txt
once fits 40 'each dataset is published once'

kill -9 "$(cat "$T/c/run/slurmdbd.pid")"
tap 0 'slurmdbd is killed: a run goes to its end' run away --datasets few.txt
once away 8 'each dataset is published once'
finish

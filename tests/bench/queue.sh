#!/bin/bash
# To have TASKS (1000) tasks queued with a ready pin: recon-submit, one plain sbatch --array, and TASKS calls of sbatch, on one
# throw-away cluster, in turns; RPCs by the controller's own count.
#   tests/bench/queue.sh BUILD [ROUNDS [TASKS]]     needs root and Slurm, as tests/cluster/cluster
set -u
PATH=$PATH:/usr/sbin:/sbin
build=$(realpath "${1:?the build folder}") rounds=${2:-11} tasks=${3:-1000}
cluster=$(cd "$(dirname "$0")/.." && pwd)/cluster/cluster
T=$(mktemp -d) || exit 1
trap '"$cluster" stop "$T/c"; rm -rf "$T"' EXIT
"$cluster" start "$T/c" || exit 1
eval "$("$cluster" env "$T/c")"
cd "$T" || exit 1
seq -f 'd%g' "$tasks" >list.txt
printf '#!/bin/sh\nexec true\n' >job; chmod 755 job
"$build/bin/recon-pin" capture -o env.pin -- /bin/true || exit 1
now() { date +%s%N; }
timed() { # timed NAME COMMAND...
    local name=$1 t; shift
    t=$(now)
    "$@" >>"$T/$name.out" 2>&1 || { tail -n 3 "$T/$name.out"; exit 1; }
    echo $((($(now) - t) / 1000)) >>"$T/$name.us"
}
recon() { "$build/bin/recon-submit" --hold --run-dir "run$1" --set pin=env.pin --set datasets_per_task=1 "${@:2}" -t 5 --datasets list.txt -- /bin/true '{dataset}'; }
array() { sbatch --hold --array=0-$((tasks - 1)) -t 5 -o /dev/null job; }
each() { local i; for i in $(seq "$tasks"); do sbatch --hold -t 5 -o /dev/null job || return 1; done; }
rpcs() { sdiag | sed -n '/by message type/,/^$/p' | awk '/ave_time|count:/ { sub(/^[ \t]+/, ""); split($0, f, /[ (]+/); for (k = 1; k <= NF; k++) if ($k ~ /^count:/) { c = $k; sub("count:", "", c) } print f[1], c }' | grep -vE 'STATS|PING|NODE_REG'; }
cancel() { scancel -u root; }
recon 0 >/dev/null 2>&1; array >/dev/null; cancel # the first of each warms
for i in $(seq "$rounds"); do
    timed recon recon "$i"
    timed bare recon "$i.bare" --set retry.closing=false
    timed array array
    cancel
done
timed each each
cancel
show() { sort -n "$T/$1.us" | awk -v name="$2" '{ v[NR] = $1 } END { printf "%-44s median %.1f ms, least %.1f, most %.1f of %d\n", name, v[int((NR + 1) / 2)] / 1e3, v[1] / 1e3, v[NR] / 1e3, NR }'; }
show recon "recon-submit, $tasks tasks and a closing job"
show bare "recon-submit, retry.closing=false"
show array "sbatch --array=0-$((tasks - 1))"
show each "$tasks sbatch calls"
for what in recon bare array; do
    sdiag -r >/dev/null 2>&1
    case $what in recon) recon last ;; bare) recon last.bare --set retry.closing=false ;; array) array ;; esac >/dev/null 2>&1
    echo "RPCs of $what: $(rpcs | tr '\n' ';')"
done
perf stat -e task-clock true 2>/dev/null && perf stat -r 5 -e task-clock,user_time,system_time "$build/bin/recon-submit" --dry-run --datasets list.txt -- /bin/true '{dataset}' 2>&1 >/dev/null | grep -E 'task-clock|time' 
exit 0

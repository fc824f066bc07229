#!/bin/bash
# What the prolog of a healthy node adds to a job: two throw-away clusters at once, one with recon-check --node=prolog as its Prolog,
# one with none; the same srun on both in turns.
#   tests/bench/prolog.sh BUILD [JOBS]     needs root and Slurm, as tests/cluster/cluster
set -u
PATH=$PATH:/usr/sbin:/sbin
build=$(realpath "${1:?the build folder}") jobs=${2:-60}
top=$(cd "$(dirname "$0")/../.." && pwd)
cluster=$top/tests/cluster/cluster
T=$(mktemp -d) && chmod 755 "$T" && mkdir "$T/pins" || exit 1
trap '"$cluster" stop "$T/with"; "$cluster" stop "$T/none"; rm -rf "$T"' EXIT
umask 022
"$build/bin/recon-pin" capture -o "$T/pins/site.pin" -- "$build/bin/recon-run" 2>/dev/null # a site pin, as a site has it
cat >"$T/node.conf" <<END2
state = "$T/state"; pins = "$T/pins"; mounts = [ "/proc" ]; drain_on = [ "gpu-lost", "path-not-answering" ];
END2
printf '#!/bin/sh\nexec %s/bin/recon-check --node=prolog --config %s/node.conf >>%s/prolog.log 2>&1\n' "$build" "$T" "$T" >"$T/prolog"
chmod 755 "$T/prolog"
printf '%s\n' "Prolog=$T/prolog" PrologFlags=Alloc >"$T/with.conf"
echo PrologFlags=Alloc >"$T/none.conf"
for c in with none; do "$cluster" start --conf "$T/$c.conf" "$T/$c" || exit 1; done
now() { date +%s%N; }
one() { # one CLUSTER: milliseconds of a job
    local t
    t=$(now)
    SLURM_CONF=$T/$1/etc/slurm.conf srun -Q -w a1 true || exit 1
    echo $((($(now) - t) / 1000)) >>"$T/$1.us"
}
one with; one none; rm "$T"/*.us # the first of each warms
for i in $(seq "$jobs"); do
    if [ $((i % 2)) = 0 ]; then one with; one none; else one none; one with; fi
done
for i in $(seq 15); do t=$(now); SLURMD_NODENAME=a1 "$T/prolog"; echo $((($(now) - t) / 1000)) >>"$T/alone.us"; done
show() { sort -n "$T/$1.us" | awk -v name="$2" '{ v[NR] = $1 } END { printf "%-28s median %.1f ms, least %.1f, most %.1f of %d\n", name, v[int((NR + 1) / 2)] / 1e3, v[1] / 1e3, v[NR] / 1e3, NR }'; }
show none 'srun true, no prolog'
show with 'srun true, recon as prolog'
paste "$T/with.us" "$T/none.us" | awk '{ print $1 - $2 }' >"$T/added.us"
show added 'added, pair by pair'
show alone 'the prolog alone'
grep -c . "$T/prolog.log" | sed 's/$/ lines said by the prologs/'

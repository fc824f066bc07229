#!/bin/bash
# A node that is cut off from the network and comes back: Slurm starts its tasks elsewhere while the first attempts live on
# beside the shared file system. Whoever is first, and when both are: one publishes, and the run ends well by itself.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch ip; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u -n sh -c 'ip link set lo up && ip link add rcx type veth peer name rcy' 2>/dev/null ||
    skip_all 'this container lets no one make a network namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
printf '%s\n' MessageTimeout=2 SlurmdTimeout=4 >"$T/more.conf"
"$cluster" start --net --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS="suppressions=$T/lsan:print_suppressions=0"
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN
mkdir "$T/w" "$T/go" && cd "$T/w" || exit 99
until_() { for i in $(seq "${2:-600}"); do eval "$1" && return 0; sleep 0.1; done; return 1; }
attempts() { find run/events -name "*.$1.jsonl" 2>/dev/null | wc -l; }
ends() { cat run/events/0/0/*."$1".jsonl 2>/dev/null | grep -c '"type":"end"'; }

# an attempt ends when it is told to
cat >prog <<'END2'
#!/bin/sh
echo "$SLURMD_NODENAME" >"$2/x"
until [ -e "$(dirname "$0")/../go/${1##*/}.$RECON_ATTEMPT" ]; do sleep 0.05; done
END2
chmod 755 prog
printf '%s\n' first second both killed >list.txt
id=$(recon-submit --parsable --run-dir run -p gpu -t 5 --datasets list.txt -- ./prog '{dataset}' '{out}' | cut -f2)
until_ '[ "$(cat run/out/0/.*/x 2>/dev/null | wc -l)" = 4 ]' 300 && ok 'four tasks run' || not_ok 'four tasks run' "$(squeue)"
node=$(squeue -h -t R -o %N -j "$id" | sort -u)
if [ "$(echo "$node" | wc -l)" = 1 ]; then ok "on one node ($node)"; else not_ok 'on one node' "$node"; fi
"$cluster" cut "$T/c" "$node"
until_ '[ "$(attempts 1)" = 4 ]' && ok 'the node is cut off: Slurm starts them elsewhere' || not_ok 'Slurm starts them elsewhere' "$(squeue)" "$(sinfo -N)"
until_ '[ "$(cat run/out/0/.*/x 2>/dev/null | grep -vc "$node")" = 4 ]' 100
if [ "$(ls -d run/out/0/.* | grep -c '\.[0-9]*\.0\.[0-9]*\.')" = 8 ]; then ok 'eight attempts are alive'; else not_ok 'eight attempts are alive' "$(ls -a run/out/0)"; fi

touch "$T/go/first.0"; until_ '[ -e run/out/0/0 ]' 100; touch "$T/go/first.1"
touch "$T/go/second.1"; until_ '[ -e run/out/0/1 ]' 100; touch "$T/go/second.0"
touch "$T/go/both.0" "$T/go/both.1"
until_ '[ "$(ends 0)" = 3 ] && [ "$(ends 1)" = 3 ]' 200 && ok 'six attempts end' || not_ok 'six attempts end' "$(tail -n 2 run/events/0/0/* run/logs/*)"
"$cluster" join "$T/c" "$node"
until_ '! "$cluster" in "$T/c" "$node" pgrep -f killed.*/out/0/.3.0.3.0 >/dev/null' 200 && ok 'the node is back, and what it still ran is gone' || not_ok 'what it still ran is gone' "$(sinfo -N; tail -n 3 "$T/c/log/slurmd.$node.log")"
touch "$T/go/killed.1"
tap 0 'the run ends well' timeout 60 recon-submit --watch=run
has "$T/err" '4 of 4 datasets done' 'every dataset is done'
for i in 0 1 2 3; do
    outputs=$(grep -h '"type":"output"' run/events/0/0/$i.*.jsonl | wc -l)
    files=$(ls run/out/0/$i | tr '\n' ' ')
    if [ "$outputs" = 1 ] && [ "$files" = 'recon.json x ' ] && [ "$(wc -l <run/out/0/$i/x)" = 1 ]; then ok "dataset $i is published once"
    else not_ok "dataset $i is published once" "$outputs outputs" "$files" "$(cat run/events/0/0/$i.*)"; fi
done
[ "$(cat run/out/0/0/x)" = "$node" ] && [ "$(cat run/out/0/1/x)" != "$node" ] && ok 'by the attempt that was first' || not_ok 'by the attempt that was first' "$(cat run/out/0/?/x)"
if ls -d run/out/0/.[0-9]* >/dev/null 2>&1; then not_ok 'no work folder is left' "$(ls -a run/out/0)"; else ok 'no work folder is left'; fi
tap 0 'report' recon-report --format json run
finish

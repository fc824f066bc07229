#!/bin/bash
# Prolog and HealthCheckProgram on a cluster: a broken node is drained with a readable reason and the job ends elsewhere
# unaided; after repair the drain is lifted; an admin's own drain is left alone.
. "${abs_top_srcdir:?}/tests/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
umask 022
mkdir -p "$T/c/nodes"
check=$(command -v recon-check)
printf '#!/bin/sh\nexec %s --node=prolog --config %s/node.conf >>%s/prolog.$SLURMD_NODENAME.log 2>&1\n' "$check" "$T" "$T" >"$T/prolog"
printf '#!/bin/sh\nexec %s --node=health --config %s/node.conf >>%s/health.$SLURMD_NODENAME.log 2>&1\n' "$check" "$T" "$T" >"$T/health"
chmod 755 "$T/prolog" "$T/health"
# each node sees its own folder at $T/c/node: the file "broken" in it is this node's kernel log
cat >"$T/node.conf" <<END
state = "$T/state"; deadline = 3.0; pins = "$T/pins"; mounts = [ "$T/c/node" ];
kernel_log = "$T/c/node/kmsg"; drain_on = [ "gpu-lost", "path-not-answering" ];
scontrol = "$(command -v scontrol)"; slurm_conf = "$T/c/etc/slurm.conf"; facts = "$T/facts";
END
mkdir "$T/facts"
cat >"$T/more.conf" <<END
Prolog=$T/prolog
HealthCheckProgram=$T/health
HealthCheckInterval=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1,nohold_on_prolog_fail
END
for i in a1 a2 h1 c1; do mkdir -p "$T/c/nodes/$i"; : >"$T/c/nodes/$i/kmsg"; done
"$cluster" start --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
cd "$T" || exit 99
state() { scontrol -o show node "$1" | sed 's/.* State=\([^ ]*\) .*/\1/'; }
reason() { scontrol -o show node "$1" | sed -n 's/.* Reason=//p'; }
until_() { for i in $(seq 100); do eval "$1" && return 0; sleep 0.1; done; return 1; }

id=$(sbatch --parsable -w a1 -o "$T/o.%j" --wrap 'echo ran on $SLURMD_NODENAME')
until_ 'grep -q "ran on a1" o.$id 2>/dev/null' && ok 'a healthy node runs its job' || not_ok 'a healthy node runs its job' "$(squeue; cat prolog.a1.log)"
until_ '[ -s facts/a1.facts ]' && ok 'health publishes the facts' || not_ok 'health publishes the facts' "$(ls facts; cat health.a1.log)"

echo '[ 1.0] NVRM: Xid (PCI:0000:44:00): 79, pid=1, GPU has fallen off the bus.' >"$T/c/nodes/a1/kmsg"
until_ 'state a1 | grep -q DRAIN' && ok 'a broken node is drained' || not_ok 'a broken node is drained' "$(cat health.a1.log)"
case $(reason a1) in 'recon: gpu-lost: Xid 79'*) ok 'with a readable reason' ;; *) not_ok 'with a readable reason' "$(reason a1)" ;; esac
: >"$T/c/nodes/a1/kmsg"
until_ '! state a1 | grep -q DRAIN' && ok 'after repair the drain is lifted' || not_ok 'after repair the drain is lifted' "$(state a1) $(reason a1)"

scontrol update NodeName=a2 State=DRAIN Reason='memory test by hand'
sleep 5
case "$(state a2) $(reason a2)" in *DRAIN*'memory test by hand'*) ok "an admin's drain is left alone" ;; *) not_ok "an admin's drain" "$(state a2) $(reason a2)" ;; esac
scontrol update NodeName=a2 State=RESUME

# the prolog fails: the health check does not see it first, since it is the mount that only the prolog's node lacks
scontrol update NodeName=c1 State=DRAIN Reason=away; until_ 'state c1 | grep -q DRAIN'
"$cluster" in "$T/c" h1 umount -l "$T/c/node" 2>/dev/null
id=$(sbatch --parsable -p gpu --exclude=a2 -o "$T/o.%j" --open-mode=append --wrap 'echo ran on $SLURMD_NODENAME')
"$cluster" in "$T/c" h1 true
until_ 'state h1 | grep -q DRAIN' && ok 'a node whose prolog or health fails is drained' || not_ok 'is drained' "$(state h1; cat prolog.h1.log health.h1.log)"
until_ 'case $(reason h1) in "recon: path-not-answering"*) true ;; *) false ;; esac' && ok 'with the reason, not with Slurm'"'"'s words' || not_ok 'the reason' "$(reason h1)"
until_ 'grep -q "ran on" o.$id 2>/dev/null' && ok 'the job ends elsewhere unaided' || not_ok 'the job ends elsewhere' "$(squeue; cat prolog.h1.log)"
finish

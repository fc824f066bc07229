#!/bin/bash
# The end of a run on a throw-away cluster: summary.json, the command hook, mail by Slurm and by the site's mailer; a hook that
# fails is told and changes nothing; a resumed run ends again.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sbatch; do command -v $p >/dev/null || skip_all "no $p here"; done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
trap '"$cluster" stop "$T/c"; chmod -R u+w "$T"; rm -rf "$T"' EXIT
cat >"$T/mailer" <<END
#!/bin/sh
{ for a; do echo "arg:\$a"; done; echo "run:\$RECON_RUN"; cat; echo end; } >>"$T/mails"
END
cat >"$T/hook" <<END
#!/bin/sh
[ "\${RECON_NAME#*fail}" = "\$RECON_NAME" ] || { echo 'no such channel'; exit 7; }
echo "\$1 \$RECON_STATUS \$RECON_EXIT \$RECON_DONE/\$RECON_DATASETS \$RECON_FAILED \$RECON_SKIPPED" >>"$T/hooked"
cp "\$RECON_SUMMARY" "$T/summary.copy"
END
chmod +x "$T/mailer" "$T/hook"
printf 'MailProg=%s\n' "$T/mailer" >"$T/more.conf"
"$cluster" start --conf "$T/more.conf" "$T/c" >"$T/start" 2>&1 || { cat "$T/start"; exit 99; }
eval "$("$cluster" env "$T/c")"
echo 'leak:libslurm.so' >"$T/lsan"
export LSAN_OPTIONS=suppressions=$T/lsan:print_suppressions=0
cd "$T" || exit 99
printf '%s\n' /etc later /usr >list.txt
until_there() { for i in $(seq 150); do [ -s "$1" ] && return; sleep 0.2; done; }
run() { # run RUN OPTION...
    tap 0 "$1" recon-submit --run-dir "$@" --datasets list.txt -- ls -d '{dataset}'
}
is() { if [ "$1" = "$2" ]; then ok "$3"; else not_ok "$3" "'$1', wanted '$2'"; fi; }

# a command
run one --set name=one --set "on_end.command=[\"$T/hook\", \"arg\"]"
until_there hooked
is "$(cat hooked)" 'arg failed 2 2/3 1 0' 'the hook gets how it ended'
tap 0 'and the summary' validate run-summary one/summary.json
tap 0 'whole' cmp one/summary.json summary.copy
lacks "$T/err" 'warning' 'nothing is warned of'
closing=$(sed -n 's/.*"job_id":"\([0-9]*\)".*/\1/p' one/submit.jsonl | tail -n 1)
for i in $(seq 50); do scontrol show job "$closing" | grep -q 'JobState=FAILED' && break; sleep 0.1; done
scontrol show job "$closing" >show
has show 'ExitCode=2:0' "the closing job's exit status is the run's"
mkdir later; rm hooked
tap 0 'resumed' recon-submit --resume one
until_there hooked
is "$(cat hooked)" 'arg ok 0 3/3 0 0' 'it ends again, and well'

# a hook that fails
run two --set name=fails --set "on_end.command=[\"$T/hook\"]"
until_there two/summary.json
for i in $(seq 50); do grep -qs 'ended with status 7' two/logs/closing-*; [ $? = 0 ] && break; sleep 0.1; done
cat two/logs/closing-* >log
has log "'$T/hook' ended with status 7; the run's result is as it was" 'is told in the log'
has log 'no such channel' 'with what it said'
has two/summary.json '"status":"ok"' 'and the run is as it was'
rm -f mails
run three --set name=three --set on_end.mail=ada@example.org --set on_end.mailer="$T/mailer"
until_there mails
for i in $(seq 50); do grep -q '^end' mails && break; sleep 0.1; done
has mails 'arg:recon: three is done: 3 of 3 datasets done' 'mail by the mailer: the subject says how it ended'
has mails 'arg:ada@example.org' 'to the address'
has mails "run:$T/three" 'from the closing job'
has mails '"type":"run-summary"' 'with the summary'
is "$(grep -c '^end' mails)" 1 'once'
rm -f mails
run four --set name=four --set on_end.mail=ada@example.org
until_there mails
for i in $(seq 50); do grep -q '^end' mails && break; sleep 0.1; done
grep -q 'arg:Slurm .*Name=four-.* Ended.*COMPLETED' mails && ok "by Slurm: of the closing job's end" || not_ok "by Slurm: of the closing job's end" "$(cat mails)"
has mails 'arg:ada@example.org' 'to the address'
is "$(grep -c '^end' mails)" 1 'once for the run, not once a task'

# refused
tap 64 'no address' recon-submit --dry-run --set on_end.mail=-f --datasets list.txt -- true
tap 64 'a command without a path' recon-submit --dry-run --set 'on_end.command=["notify"]' --datasets list.txt -- true
tap 64 'nobody to run it' recon-submit --dry-run --set retry.closing=false --set on_end.mail=a@b --datasets list.txt -- true
rm -f hooked
tap 0 'a local run' recon-submit --local --run-dir five --set name=five --set "on_end.command=[\"$T/hook\", \"here\"]" --datasets list.txt -- ls -d '{dataset}'
is "$(cat hooked)" 'here ok 0 3/3 0 0' 'has its hook, too'
finish

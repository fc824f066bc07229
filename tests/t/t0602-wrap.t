#!/bin/bash
# A user's own sbatch script, wrapped: its directives are ours, its traps are told with their lines, its text runs once a
# dataset, through the launcher, with records, resume and report.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$T" || exit 99
unset ${!SLURM_*} ${!SBATCH_*} ${!RECON_*} LD_LIBRARY_PATH
export HOME=$T
printf 'path\tvoxel.size\tname\n%s/a b\t0.5\tfirst\n%s/$(touch bad)\t\tsecond\n%s/c\t2\tthird\n' "$T" "$T" "$T" >list.tsv
cat >my.sbatch <<'END'
#!/bin/bash -f
# fuses one scan
#SBATCH -J "fuse scans"
#SBATCH --time=02:00   # two hours?
#SBATCH --mem 64000 --gres=gpu:1
#SBATCH --exclusive -p gpu

#SBATCH --comment="it's \"here\""
set -eu
echo "arg=$1 n=$RECON_DATASET name=$RECON_DATASET_NAME path=$RECON_DATASET_PATH voxel=${RECON_COLUMN_VOXEL_SIZE-unset} glob=*"
[ "$RECON_DATASET_NAME" != "${FAIL:-}" ] || exit 3
echo "$RECON_DATASET_PATH" >"$RECON_OUT/done"
END
dry() { recon-submit --dry-run --set submit.via=nobody --datasets list.tsv --wrap-script "$@"; }
unset SLURM_CONF

# directives
tap 0 'a dry run' dry my.sbatch -- --first
for line in '#SBATCH --time=0-00:02:00' '#SBATCH --mem=64000M' '#SBATCH --gres=gpu:1' '#SBATCH --exclusive' \
    '#SBATCH --partition=gpu' "#SBATCH --comment=\"it's \\\"here\\\"\"" '#SBATCH --array=0-2'; do
    has "$T/out" "$line" "says $line"
done
grep -q '^#SBATCH --job-name=fuse-scans-[0-9a-f]*\.0$' "$T/out" && ok "the job's name begins ours" || not_ok "the job's name begins ours" "$(grep job-name "$T/out")"
has "$T/err" 'time-hhmm' 'the trap of times is told'
has "$T/err" 'is taken as 64000M' 'and of units'
has "$T/out" "--each -- '/bin/bash' -f" 'the interpreter of the first line, and its argument'
has "$T/out" '/wrapped.sh' "runs the run's own copy"
lacks "$T/out" 'set -eu' 'the text of the script stays out of ours'
SBATCH_TIMELIMIT=7 tap 0 'as for sbatch' env SBATCH_TIMELIMIT=7 recon-submit --dry-run --set submit.via=nobody --datasets list.tsv -p cpu --wrap-script my.sbatch
has "$T/out" '#SBATCH --time=0-00:07:00' 'SBATCH_* go over the script'
has "$T/out" '#SBATCH --partition=cpu' 'and the command line too'
cat >job.conf <<'END'
datasets = "list.tsv"; script = ( "my.sbatch", "--from-conf" ); sbatch = { mem = "1G"; };
END
tap 0 'a job.conf that names the script' recon-submit --dry-run --set submit.via=nobody job.conf
has "$T/out" '#SBATCH --mem=1G' 'goes over it'
has "$T/out" '#SBATCH --gres=gpu:1' 'and keeps the rest'
has "$T/out" '--from-conf' 'with arguments'

# what is refused, with its line
bad() { # bad NAME 'DIRECTIVE LINE' MESSAGE
    { echo '#!/bin/bash'; echo; echo "$2"; echo true; } >bad.sbatch
    tap 64 "$1" dry bad.sbatch
    has "$T/err" "$3" 'is refused with its line'
}
bad 'an array' '#SBATCH --array=1-10' "bad.sbatch:3: sbatch's option 'array' is not taken"
bad 'one log for all' '#SBATCH -o out.log' "bad.sbatch:3: sbatch's option 'output' is 'out.log': all tasks would write one file"
bad 'waiting' '#SBATCH -W' "bad.sbatch:3: sbatch's option 'wait' is not taken"
bad 'another cluster' '#SBATCH -M other' "bad.sbatch:3: sbatch's option 'clusters' is not taken"
bad 'a wrong time' '#SBATCH -t soon' "bad.sbatch:3: '--time' wants minutes, H:M:S or D-H:M:S"
bad 'an unknown option' '#SBATCH --partitoin=gpu' "bad.sbatch:3: sbatch has no option '--partitoin'"
bad 'an open quote' '#SBATCH --comment="x' 'bad.sbatch:3: a quote is left open'
bad 'a heterogeneous job' '#SBATCH hetjob' "bad.sbatch:3: 'hetjob' is no option"
printf '#!/bin/bash\nmodule load cuda\n#SBATCH --time=5\n' >late.sbatch
tap 64 'a late directive' dry late.sbatch
has "$T/err" 'late.sbatch:3: a directive after the first command' 'is refused with its line'
echo 'true' >none.sbatch
tap 64 'no first line' dry none.sbatch
has "$T/err" 'none.sbatch:1: a script has to begin with #!' 'is refused'
tap 64 'a script that is not there' dry not-there.sbatch
one_line "$T/err" 'in one line'
cp my.sbatch open.sbatch; chmod 666 open.sbatch
tap 77 'a script that others may write' dry open.sbatch

# what is told
printf '#!/bin/bash\n# SBATCH -p gpu\n#PBS -l walltime=1\n#SBATCH -A $PROJECT\nprintf "%%s" "$SLURM_ARRAY_TASK_ID"\n' >traps.sbatch
tap 0 'traps' dry traps.sbatch
has "$T/err" "traps.sbatch:2: '# SBATCH -p gpu' is a comment to sbatch" 'a look-alike'
has "$T/err" "traps.sbatch:3: '#PBS -l walltime=1' is a directive of PBS" 'a directive of another system'
has "$T/err" 'directive-not-expanded' 'a variable in a directive'
has "$T/err" 'traps.sbatch:5: SLURM_ARRAY_TASK_ID is the number of a task' 'the number of a task'
printf 'path\tvoxel-size\tvoxel.size\na\t1\t2\n' >clash.tsv
tap 64 'two columns of one variable' recon-submit --dry-run --datasets clash.tsv --wrap-script my.sbatch
has "$T/err" 'both become variable RECON_COLUMN_VOXEL_SIZE' 'are refused'


# it runs
grep -v 'gres\|SBATCH.*gpu' my.sbatch >run.sbatch
sed 's/$/\r/' run.sbatch >dos.sbatch
tap 3 'one dataset fails' env FAIL=second recon-submit --local --run-dir run --set 'env=["FAIL"]' --datasets list.tsv --wrap-script dos.sbatch -- '{voxel.size}' 
has "$T/err" 'has DOS line ends' 'DOS line ends are told'
tap 0 'the copy has none, and nothing else differs' cmp run/wrapped.sh run.sbatch
cat run/logs/* >logs
has logs "arg=0.5 n=0 name=first path=$T/a b voxel=0.5 glob=*" 'the script gets its arguments and its dataset'
has logs "n=2 name=third path=$T/c voxel=2" 'each its own'
[ "$(cat run/out/0/0/done)" = "$T/a b" ] && ok 'its result is published' || not_ok 'its result is published' "$(ls -R run/out)"
[ ! -e run/out/0/1 ] && ok 'that of the failed one is not' || not_ok 'that of the failed one is not'
[ ! -e bad ] && ok 'no name runs' || not_ok 'no name runs'
recon-report --format json run >report 2>&1
has report '"failed"' 'the report tells'
rm my.sbatch dos.sbatch run.sbatch
sed -i 's/FAIL=second/FAIL=none/; s/"FAIL"; how = "set"; value = "second"/"FAIL"; how = "set"; value = "none"/' run/env.pin
tap 0 'resume needs the original no more' recon-submit --local --resume run --redo-changed
[ "$(cat run/out/0/1/done)" = "$T/\$(touch bad)" ] && ok 'and runs what is left' || not_ok 'and runs what is left' "$(ls -R run/out)"
grep -h . run/logs/* | grep -c 'name=first' >count
tap 0 'nothing left to do' recon-submit --local --resume run
has "$T/err" 'nothing to do' 'says so'
finish

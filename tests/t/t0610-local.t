#!/bin/bash
# --local: the generated script's tasks here, through the launcher; odd names; failures; --resume; stopped cleanly.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset SLURM_CONF
HOME=$T/home; export HOME
mkdir -p "$T/home" "$T/w/scans" && cd "$T/w" || exit 99
latin=$(printf 'caf\351')
i=0
for name in plain 'two words' "it's" '$(touch bad)' '"q"' -dash "$latin" 'a;b&c|d' '*'; do
    i=$((i + 1)); echo "data $i" >"scans/$name"; printf 'scans/%s\n' "$name" >>list.txt
done
cat >prog <<'END'
#!/bin/sh
# copies, and fails on what the file "fail" names
[ ! -e fail ] || [ "$(cat "$1")" != "$(cat fail)" ] || exit 65
cp -- "$1" "$2/copy" && echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT $LEAK" >"$2/task"
END
chmod +x prog
one() { # one PATTERN: the only run directory of that name
    set -- runs/$1-*; [ $# = 1 ] && echo "$1"
}
SLURM_JOB_ID=99 SLURM_CPUS_PER_TASK=77 SLURM_PROCID=5 \
    tap 0 'nine datasets with odd names' recon-submit --local=2 --set name=odd --datasets list.txt -- ./prog '{dataset}' '{out}'
run=$(one odd)
has "$T/err" '9 of 9 datasets done, 0 failed' 'are told in one line'
has "$T/err" "see recon-report '$T/w/$run'" 'that names the report'
has "$T/out" "$T/w/$run local-" 'stdout holds run and job'
one_line "$T/out" 'and nothing else'
good=0
for k in 0 1 2 3 4 5 6 7 8; do [ "$(cat "$run/out/0/$k/copy")" = "data $((k + 1))" ] && good=$((good + 1)); done
if [ $good = 9 ]; then ok 'each has its own result'; else not_ok 'each has its own result' "$good"; fi
if [ -e bad ]; then not_ok 'no name ran'; else ok 'no name ran'; fi
has "$run/out/0/3/task" '3 of 9' 'tasks know their place'
if [ "$(readlink "$run/script.sbatch")" = sub/0.sbatch ]; then ok 'script.sbatch is a link'; else not_ok 'script.sbatch is a link'; fi
for f in job.conf env.pin datasets.jsonl datasets.idx sub/0.map submit.jsonl; do
    [ -s "$run/$f" ] || not_ok "the run holds $f"
done
if [ "$(ls "$run/logs" | wc -l)" = 9 ]; then ok 'a log a task'; else not_ok 'a log a task' "$(ls "$run/logs")"; fi

tap 0 'resume when all is done' recon-submit --local --resume "$run"
has "$T/err" 'nothing to do' 'has nothing to do'
rm -rf "$run/out/0/4" "$run/out/0/7"
tap 0 'resume after two results went' recon-submit --local --parsable --resume "$run"
has "$T/err" '9 of 9 datasets done' 'makes them again'
has "$T/out" "$(printf '%s\tlocal-' "$T/w/$run")" 'parsable: a tab'
has "$run/out/0/7/copy" 'data 8' 'where they were'
has "$run/sub/1.sbatch" '#SBATCH --array=0-1' 'in a submission of two tasks'
grep -q "^#SBATCH --job-name=$(sed -n 's/^#SBATCH --job-name=\(.*\)\.0$/\1/p' "$run/sub/0.sbatch")\.1$" "$run/sub/1.sbatch" &&
    ok 'under the same name' || not_ok 'under the same name' "$(grep job-name "$run"/sub/*.sbatch)"

# failures
echo 'data 3' >fail
tap 65 'the first failing status is the exit status' recon-submit --local --set name=some --set datasets_per_task=2 \
    --datasets list.txt -- ./prog '{dataset}' '{out}'
run=$(one some)
has "$T/err" '8 of 9 datasets done, 1 failed' 'the others are done'
has "$run/sub/0.sbatch" '#SBATCH --array=0-4' 'two datasets a task'
rm fail
tap 0 'resume' recon-submit --local --resume "$run"
has "$T/err" '9 of 9 datasets done, 0 failed' 'does what failed'
grep -qx '#SBATCH --array=0' "$run/sub/1.sbatch" && ok 'and only that' || not_ok 'and only that' "$(cat "$run/sub/1.sbatch")"
cp "$run/env.pin" "$T/pin"
sed 's/^captured/# another\ncaptured/' "$T/pin" >"$run/env.pin"
tap 64 'results of another pin' recon-submit --local --resume "$run"
has "$T/err" '--redo-changed makes such results again' 'are refused'
tap 0 'unless told' recon-submit --local --redo-changed --resume "$run"
has "$T/err" '9 of 9 datasets done' 'and then made again'

# a program that takes its task's datasets itself, with no placeholder
cat >own <<'END'
#!/bin/sh
echo "$RECON_RUN $RECON_SUB $RECON_TASK" >"$RECON_RUN/task.$RECON_TASK"
[ "$RECON_TASK" != 1 ] || [ ! -e fail ] || exit 7
END
chmod +x own; : >fail
tap 7 'once a task' recon-submit --local --run-dir own.run --set datasets_per_task=5 --datasets list.txt -- ./own
has own.run/task.1 "$T/w/own.run 0 1" 'with RECON_RUN, RECON_SUB, RECON_TASK'
has "$T/err" '5 of 9 datasets done, 4 failed' 'and its end speaks for its datasets'
rm fail
tap 0 'resume' recon-submit --local --resume own.run
has "$T/err" '9 of 9 datasets done' 'does the failed task again'

# columns of the list
printf 'path\tscale\nscans/plain\t7\nscans/two words\t9\n' >list.tsv
tap 0 'columns' recon-submit --local --run-dir columns --datasets list.tsv -- sh -c 'echo "$1" >"$2/s"' - '{scale}' '{out}'
if [ "$(cat columns/out/0/0/s columns/out/0/1/s)" = "7
9" ]; then ok 'come to the program'; else not_ok 'come to the program' "$(find columns/out)"; fi

# a column that one dataset lacks is that dataset's fault; one that none has is the command's
printf '{"path":"scans/plain","q":"v"}\n{"path":"scans/two words"}\n{"path":"scans/*","q":"w","voxel size":1}\n' >part.jsonl
tap 65 'a column that one dataset lacks' recon-submit --local --run-dir part --datasets part.jsonl -- sh -c 'echo "$1 $2"' - '{q}' '${q}'
has "$T/err" '2 of 3 datasets done, 1 failed' 'the others are done'
has part/logs/*_0.log 'v $v' 'with its value'
has part/logs/*_1.log "dataset 'two words' has no column 'q'" 'it is told'
if recon-report --format csv part | grep -q '^1,two words,failed,65,'; then ok 'and recorded'; else not_ok 'and recorded' "$(recon-report part)"; fi
tap 65 'also when its name is odd' recon-submit --local --run-dir part2 --datasets part.jsonl -- sh -c 'echo "$1" >"$2/x"' - '{voxel size}' '{out}'
has "$T/err" '1 of 3 datasets done, 2 failed' 'for those that lack it'
tap 64 'a column that no dataset has' recon-submit --local --run-dir part3 --datasets list.tsv -- echo '{scal}'
has "$T/err" "'{scal}', a column that no dataset has; the nearest is '{scale}'" 'is refused with the nearest'
if [ -e part3 ]; then not_ok 'before anything is made'; else ok 'before anything is made'; fi
tap 0 'braces of a shell' recon-submit --local --run-dir part4 --datasets list.tsv -- sh -c 'f() { :; }; echo ${HOME} >"$1/h"; echo {a,b}' - '{out}'

# programs
tap 126 'a program that is not executable' recon-submit --local --datasets list.tsv -- /etc/passwd
has "$T/err" "cannot execute '/etc/passwd': Permission denied" 'is told'
tap 126 'a folder' recon-submit --local --datasets list.tsv -- "$T/w/"
has "$T/err" 'it is a folder' 'is told'
tap 127 'nothing there' recon-submit --local --datasets list.tsv -- ./nothing
tap 64 'no program' recon-submit --local --datasets list.tsv
has "$T/err" 'no program after --: ' 'is asked for'
lacks "$run/events/0/0/0.0.jsonl" 'were not judged' 'a script whose interpreter is pinned is judged'

# the environment
LEAK=yes tap 0 'export NONE' recon-submit --local --run-dir none --export=NONE --set 'env=[ "KEPT=a b", "MINE" ]' --datasets list.tsv -- \
    sh -c 'echo "$LEAK $KEPT $HOME" >"$1/e"' - '{out}'
has none/out/0/0/e " a b $HOME" 'only the pinned variables come'
lacks none/out/0/0/e yes 'and none else'

# stopped: nothing goes on, nothing looks whole, and it can go on later
cat >slow <<'END'
#!/bin/sh
trap '' TERM
echo $$ >>"$RECON_RUN/pids"
[ ! -e go ] || { echo whole >"$1/result"; exit 0; }
echo half >"$1/result"
sleep 60 & echo $! >>"$RECON_RUN/pids"; wait; sleep 60
END
chmod +x slow
recon-submit --local=2 --run-dir stop --datasets list.tsv -- ./slow '{out}' >"$T/out" 2>"$T/err" &
pid=$!
for i in $(seq 100); do [ -s stop/pids ] && [ "$(wc -l <stop/pids)" -ge 4 ] && break; sleep 0.05; done
tap 69 'a second one at the same run' recon-submit --local --resume stop
has "$T/err" 'another recon-submit works on' 'is told to wait'
kill -TERM $pid; sleep 0.5; kill -TERM $pid # the second: without more grace
wait $pid; got=$?
if [ $got = 143 ]; then ok 'ended by TERM: 143'; else not_ok 'ended by TERM: 143' "status $got"; fi
left=; while read -r p; do [ -d "/proc/$p" ] && left="$left $p"; done <stop/pids
if [ -z "$left" ]; then ok 'no process is left, though it ignores TERM'; else not_ok 'no process is left' "$left"; kill -9 $left; fi
if [ -e stop/out/0/0 ]; then not_ok 'nothing half-made looks whole'; else ok 'nothing half-made looks whole'; fi
: >go
tap 0 'and goes on later' recon-submit --local --resume stop
has stop/out/0/0/result whole 'to its end'

sed -i '/^trap/d' slow; rm go
recon-submit --local=2 --run-dir killed --datasets list.tsv -- ./slow '{out}' >"$T/out" 2>"$T/err" &
pid=$!
for i in $(seq 100); do [ -s killed/pids ] && [ "$(wc -l <killed/pids)" -ge 4 ] && break; sleep 0.05; done
kill -KILL $pid; wait $pid 2>/dev/null
for i in $(seq 400); do
    left=; while read -r p; do [ -d "/proc/$p" ] && left="$left $p"; done <killed/pids
    [ -z "$left" ] && break; sleep 0.05
done
if [ -z "$left" ]; then ok 'killed: its tasks go with it'; else not_ok 'killed: its tasks go with it' "$left"; kill -9 $left; fi
tap 0 'cancel of a local run that is gone' recon-submit --cancel killed

# called off
recon-submit --local=1 --run-dir off --datasets list.tsv -- ./slow '{out}' >"$T/out" 2>"$T/err" & pid=$!
for i in $(seq 100); do [ -s off/pids ] && [ "$(wc -l <off/pids)" -ge 2 ] && break; sleep 0.05; done
tap 0 'cancel' recon-submit --cancel off
wait $pid
recon-report --format csv off >"$T/out"
has "$T/out" '0,plain,cancelled,143' 'what ran was ended'
has "$T/out" '1,two words,cancelled,0,0.000,,,0,,,it was cancelled before it began' 'what waited was cancelled'
tap 0 'the text says so' recon-report off
has "$T/out" '2 cancelled' 'too'
finish

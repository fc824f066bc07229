#!/bin/sh
# recon-launch: exit statuses, environment, record, verdicts, one program a dataset.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/launch.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
unset RECON_CHECK RECON_PIN SLURM_JOB_ID SLURM_RESTART_COUNT SLURM_JOB_END_TIME SLURM_ARRAY_JOB_ID
sh=$(readlink -f /bin/sh)
pin "$T/p.pin" "$sh" '{ name = "PINNED"; how = "set"; value = "as promised"; }' \
    '{ name = "DROPPED"; how = "unset"; }' "{ name = \"HEAD\"; how = \"prepend\"; value = \"/first\"; }"
launch() { recon-launch --pin "$T/p.pin" "$@"; }

# ---- statuses ----
tap 0 'success' launch -- "$sh" -c 'exit 0'
tap 3 "the program's own status" launch -- "$sh" -c 'exit 3'
tap 75 'even 75' launch -- "$sh" -c 'exit 75'
tap 139 '128 + the signal' launch -- "$sh" -c 'kill -SEGV $$'
tap 127 'no such program' launch -- no-such-program
has "$T/err" "recon-launch: program 'no-such-program' is in no folder of PATH" 'is told so'
tap 127 'no such file' launch -- "$T/none"
echo text >"$T/plain"
tap 126 'not executable' launch -- "$T/plain"
printf '#!/no/such/interpreter\n' >"$T/script"; chmod +x "$T/script"
tap 126 'its interpreter is missing' launch -- "$T/script"
has "$T/err" 'interpreter' 'and is told so'
mkdir "$T/bin"; printf '#!/bin/sh\necho found\n' >"$T/bin/by-path"; chmod +x "$T/bin/by-path"
tap 0 'looked up in PATH' env PATH="$T/bin:$PATH" recon-launch --pin "$T/p.pin" -- by-path
cd "$T/bin" || exit 99
tap 127 'a relative or empty folder of PATH is not used' env PATH="::.:$PATH" recon-launch --pin "$T/p.pin" -- by-path
cd "$T" || exit 99
tap 5 '--exec' launch --exec -- "$sh" -c 'exit 5'

# ---- usage ----
tap 64 'no program' launch
tap 64 'no pin' recon-launch -- true
tap 64 '--run without --task' launch --run "$T/run" --sub 0 -- true
tap 64 'unknown option' launch --grcae 3 -- true
has "$T/err" '--grace' 'the nearest is named'
tap 64 'no run directory' launch --run "$T/none" --sub 0 --task 0 -- true
tap 74 'no such pin' recon-launch --pin "$T/none.pin" -- true
cp "$T/p.pin" "$T/open.pin"; chmod 666 "$T/open.pin"
tap 77 'a pin that others may write' recon-launch --pin "$T/open.pin" -- true
one_line "$T/err" 'one line says so'
echo 'version = ;' >"$T/bad.pin"
recon-launch --pin "$T/bad.pin" -- "$sh" -c "echo ran >$T/ran" >"$T/out" 2>"$T/err"
same "$?" 64 'a damaged pin'
if [ -e "$T/ran" ]; then not_ok 'nothing runs'; else ok 'nothing runs'; fi
recon-launch --help >"$T/help" 2>&1
for o in pin run sub task check-only exec skip format grace no-bind verbose; do
    grep -q "^\.It Fl \(. , \)\{0,1\}-\{0,1\}$o" "$abs_top_srcdir/man/recon-launch.1" && grep -q -- "--$o" "$T/help" || missing=$o
done
same "${missing:-}" '' 'help and manual name every option'

# ---- environment ----
DROPPED=x HEAD=/last PINNED=other launch -- "$sh" -c 'echo "$PINNED|$DROPPED|$HEAD|$RECON_PIN"' >"$T/out" 2>"$T/err"
same "$(cat "$T/out")" "as promised||/first:/last|$T/p.pin" 'the pinned variables are restored'
has "$T/err" 'env-drift' 'a drifted variable is told'

# ---- the record ----
new_run "$T/run" 2 one two three
tap 0 'a task that runs once' launch --run "$T/run" --sub 0 --task 0 -- "$sh" -c \
    'echo "$RECON_RUN $RECON_SUB $RECON_TASK $RECON_ATTEMPT"; [ -n "$RECON_EVENTS_START" ] && [ -e "/proc/self/fd/$RECON_EVENTS_FD" ]'
same "$(cat "$T/out")" "$T/run 0 0 0" 'it is told its place'
E0=$T/run/events/0/0/0.0.jsonl
same "$(head -n 1 "$E0" | grep -c '"type":"attempt"')" 1 'the first line is the attempt'
same "$(event "$E0" attempt pin | cut -c 1-5)" 'xxh3:' 'with the digest of the pin'
same "$(tail -n 1 "$E0" | grep -c '"type":"end"')" 1 'the last line is the end'
same "$(event "$E0" end status) $(event "$E0" end done)" 'ok 2' 'which says ok for both datasets'
tap 4 'again' env SLURM_RESTART_COUNT=0 recon-launch --pin "$T/p.pin" --run "$T/run" --sub 0 --task 0 -- "$sh" -c 'exit 4'
E1=$T/run/events/0/0/0.1.jsonl
same "$(event "$E1" end status) $(event "$E1" end exit) $(event "$E1" end failed)" 'failed 4 2' 'the next attempt has its own file'
tap 0 'a requeued task' env SLURM_RESTART_COUNT=7 SLURM_JOB_ID=33 SLURM_ARRAY_JOB_ID=31 SLURM_ARRAY_TASK_ID=2 \
    SLURMD_NODENAME=n7 recon-launch --pin "$T/p.pin" --run "$T/run" --sub 0 --task 0 -- true
E7=$T/run/events/0/0/0.7.jsonl
same "$(event "$E7" attempt attempt) $(event "$E7" attempt job) $(event "$E7" attempt node)" '7 31_2 n7' \
    'counts as Slurm does, in its words'
tap 64 'a slot outside' launch --run "$T/run" --sub 0 --task 2 -- true
tap 0 'the program writes events itself' launch --run "$T/run" --sub 0 --task 1 -- "$sh" -c '
    echo "{\"v\":1,\"type\":\"dataset\",\"at_ms\":1.0,\"dataset\":2,\"status\":\"skipped\",\"exit\":0,\"wall_ms\":1.0,\"vertices\":0,\"faces\":0}" >>"/dev/fd/$RECON_EVENTS_FD"'
E=$T/run/events/0/0/1.0.jsonl
same "$(event "$E" end done) $(event "$E" end failed)" '0 0' 'and they are what counts'
tap 0 'the record is valid' validate_run "$T/run"

# ---- no room, no permission ----
cat >"$T/full" <<'E'
. "$abs_top_srcdir/tests/launch.sh"
mount -t tmpfs -o size=64k none "$T/small" || exit 99
new_run "$T/small/run" 1 one two
launch="recon-launch --pin $T/p.pin --run $T/small/run --sub 0"
$launch --task 0 -- "$sh" -c 'dd if=/dev/zero of=$1/big bs=1k count=500 2>/dev/null; exit 0' x '{out}'
echo "publish $? $(ls -A "$T/small/run/out/0")"
dd if=/dev/zero of="$T/small/fill" bs=1k 2>/dev/null
$launch --task 1 -- true; echo "record $?"
mount -o remount,ro "$T/small"
$launch --task 1 -- echo ran; echo "read-only $?"
E
mkdir "$T/small"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    T=$T sh=$sh unshare -m sh "$T/full" >"$T/out" 2>"$T/err"
    same "$(cat "$T/out")" 'publish 74 
record 74
read-only 73' 'a full disk is 74, a read-only one 73, and nothing half is published'
    has "$T/err" "dataset 0 'one': cannot write" 'the dataset is named'
    has "$T/err" 'No space left on device' 'and the reason'
else
    skip 'no mount here'
fi

# ---- refused ----
cat >"$T/main.c" <<'C'
int away(void);
int main(void) { return away(); }
C
echo 'int away(void) { return 0; }' >"$T/away.c"
mkdir "$T/lib"
${CC:-cc} -shared -fPIC -Wl,-soname,libaway.so.1 -o "$T/lib/libaway.so.1" "$T/away.c" &&
    ${CC:-cc} -o "$T/prog" "$T/main.c" "$T/lib/libaway.so.1"
pin "$T/away.pin" "$T/prog" "{ name = \"LD_LIBRARY_PATH\"; how = \"set\"; value = \"$T/gone:$T/lib\"; }"
tap 0 'a library found by the pinned LD_LIBRARY_PATH' env -u LD_LIBRARY_PATH recon-launch --pin "$T/away.pin" -- "$T/prog"
mv "$T/lib/libaway.so.1" "$T/elsewhere.so"
new_run "$T/run" 1 one
recon-launch --pin "$T/away.pin" --run "$T/run" --sub 0 --task 0 -- "$T/prog" >"$T/out" 2>"$T/err"
st=$?
case $st in 75 | 78) ok "refused before exec ($st)" ;; *) not_ok 'refused before exec' "status $st" "$(cat "$T/err")" ;; esac
has "$T/err" 'lib-not-found' 'lib-not-found'
has "$T/err" 'libaway.so.1' 'names the library'
has "$T/err" "$T/lib" 'and where it was looked for'
E=$T/run/events/0/0/0.0.jsonl
same "$(event "$E" finding rule | grep -c lib-not-found)" 1 'recorded'
same "$(event "$E" end status) $(event "$E" end exit)" "refused $st" 'the verdict is recorded'
if [ $st = 75 ]; then has "$T/run/bad-nodes.jsonl" lib-not-found 'the node is recorded as bad'
else ok 'scope job: no bad node'; fi
tap 0 'the record is valid' validate_run "$T/run"
tap "$st" '--check-only' recon-launch --pin "$T/away.pin" --check-only --format jsonl
has "$T/out" '"rule":"lib-not-found"' 'findings on stdout as JSON lines'
has "$T/out" '"type":"summary"' 'and a summary'
RECON_CHECK=warn recon-launch --pin "$T/away.pin" --run "$T/run" --sub 0 --task 0 -- "$sh" -c 'echo ran' >"$T/out" 2>"$T/err"
same "$? $(cat "$T/out")" '0 ran' 'RECON_CHECK=warn runs it'
has "$T/err" 'lib-not-found' 'says what is wrong'
has "$T/run/events/0/0/0.1.jsonl" 'RECON_CHECK=warn' 'and records the override'
RECON_CHECK=off recon-launch --pin "$T/away.pin" --run "$T/run" --sub 0 --task 0 -- "$sh" -c 'echo ran' >"$T/out" 2>"$T/err"
same "$? $(cat "$T/out" "$T/err")" '0 ran' 'RECON_CHECK=off judges nothing'
has "$T/run/events/0/0/0.2.jsonl" 'RECON_CHECK=off' 'and records that'
tap 0 '--skip' recon-launch --pin "$T/away.pin" --skip lib-not-found --skip symver-missing -- "$sh" -c :

# ---- once a dataset ----
printf '#!/bin/sh\necho "$1" >"$2/path.txt"; echo "$3,$4,$RECON_DATASET" >>"%s/args"\ncase $1 in */bad*) exit 9 ;; esac\n' \
    "$T" >"$T/each"
chmod +x "$T/each"
pin "$T/p.pin" "$T/each"
columns=',"voxel":0.02'
new_run "$T/run" 4 one "two 'q" bad "last \$(touch $T/oops) {out}"
tap 9 'a program that runs once a dataset' launch --run "$T/run" --sub 0 --task 0 -- "$T/each" {dataset} {out} 'v={voxel}' '{other}'
same "$(cat "$T/args" | tr '\n' ' ')" 'v=0.02,{other},0 v=0.02,{other},1 v=0.02,{other},2 v=0.02,{other},3 ' 'gets its columns'
same "$(cat "$T/run/out/0/0/path.txt" "$T/run/out/0/1/path.txt" "$T/run/out/0/3/path.txt")" \
    "$T/d/one
$T/d/two 'q
$T/d/last \$(touch $T/oops) {out}" 'names are data'
if [ -e "$T/oops" ]; then not_ok 'no shell sees a name'; else ok 'no shell sees a name'; fi
if [ -e "$T/run/out/0/2" ]; then not_ok 'a failed one is not published'; else ok 'a failed one is not published'; fi
same "$(ls -A "$T/run/out/0" | tr '\n' ' ')" '0 1 3 ' 'nothing of it is left'
E=$T/run/events/0/0/0.0.jsonl
same "$(event "$E" dataset status | tr '\n' ' ')$(event "$E" dataset exit | tr '\n' ' ')" 'done done failed done 0 0 9 0 ' 'one dataset event each'
same "$(event "$E" output path | tr '\n' ' ')" 'path.txt path.txt path.txt ' 'one output event a file'
same "$(event "$E" end status) $(event "$E" end done) $(event "$E" end failed)" 'failed 3 1' 'counted in the end'
tap 0 'the record is valid' validate_run "$T/run"
sed -i 's/\*\/bad/*\/never/' "$T/each"; : >"$T/args"
tap 0 'the same task again' launch --run "$T/run" --sub 0 --task 0 -- "$T/each" {dataset} {out} v '{other}'
same "$(wc -l <"$T/args")" 1 'runs only what is not published'
new_run "$T/run" 3 one two three
printf '#!/bin/sh\nsleep 1\n' >"$T/each"
SLURM_JOB_END_TIME=$(($(date +%s) + 2)) recon-launch --pin "$T/p.pin" --run "$T/run" --sub 0 --task 0 -- "$T/each" {dataset} \
    >"$T/out" 2>"$T/err"
same "$? $(event "$T/run/events/0/0/0.0.jsonl" dataset status | tr '\n' ' ')" '124 done skipped skipped ' \
    'no further dataset when the time does not suffice'
finish

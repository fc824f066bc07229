#!/bin/sh
# recon-launch as a parent: signals handed on, the grace, what is left behind, a killed launcher.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/launch.sh"
unset RECON_CHECK RECON_PIN SLURM_JOB_ID SLURM_RESTART_COUNT SLURM_JOB_END_TIME
RECON_CHECK=off; export RECON_CHECK # judged elsewhere; here only the child matters
sh=$(readlink -f /bin/sh)
pin "$T/p.pin" "$sh"
alive() { [ -e "/proc/$1/stat" ] && ! grep -q ') Z ' "/proc/$1/stat"; }
gone() { ! alive "$1"; }
begin() { # begin OPTIONS... -- SCRIPT: runs in the background, waits until the script wrote $T/up
    rm -f "$T/up"
    opts=
    while [ "$1" != -- ]; do opts="$opts $1"; shift; done
    env --default-signal=HUP,INT,QUIT recon-launch --pin "$T/p.pin" $opts -- "$sh" -c "$2" >"$T/out" 2>"$T/err" </dev/null &
    L=$! # sh starts what runs beside it with INT and QUIT ignored, and nohup with HUP
    until_true 10 test -e "$T/up" || not_ok 'the program starts' "$(cat "$T/err")"
}
export T

for s in USR1 USR2 HUP QUIT CONT INT TERM; do
    begin -- 'trap "echo got '$s'; exit 6" '$s'; : >"$T/up"; while :; do sleep 0.05; done'
    kill -$s $L
    wait $L
    same "$? $(cat "$T/out")" "6 got $s" "$s is handed on"
done
begin -- 'echo $$ >"$T/pid"; ps -o pgid= -p $$ >"$T/pg"; : >"$T/up"; sleep 30'
same "$(tr -d ' ' <"$T/pg")" "$(cat "$T/pid")" 'the program leads a process group of its own'
kill -TERM $L
wait $L
same "$?" 143 'TERM ends it: 128 + 15'

new_run "$T/run" 1 one
run="--run $T/run --sub 0 --task 0"
begin $run --grace 0.5 -- 'trap "" TERM INT; sh -c "trap \"\" TERM; exec setsid sleep 300" & echo $$ $! >"$T/pids"; : >"$T/up"; while :; do sleep 0.05; done'
from=$(date +%s%N)
kill -TERM $L
wait $L
st=$? ms=$((($(date +%s%N) - from) / 1000000))
same "$st" 137 'a child that ignores TERM is killed'
if [ $ms -ge 400 ] && [ $ms -lt 5000 ]; then ok "after the grace ($ms ms)"; else not_ok 'after the grace' "$ms ms"; fi
read -r a b <"$T/pids"
if gone "$a" && gone "$b"; then ok 'and so is a grandchild in another session'; else not_ok 'left' "$(ps -fp "$a,$b")"; fi
E=$T/run/events/0/0/0.0.jsonl
same "$(event "$E" end status) $(event "$E" end exit) $(event "$E" end signal)" 'killed 137 9' 'the end is recorded'

begin $run -- 'setsid sleep 300 & echo $! >"$T/pid"; : >"$T/up"; exit 0'
wait $L
same "$?" 0 "a child left behind does not change the program's status"
if gone "$(cat "$T/pid")"; then ok 'it is gone'; else not_ok 'it is gone' "$(ps -fp "$(cat "$T/pid")")"; fi
has "$T/err" 'processes-left' 'and reported'
same "$(event "$T/run/events/0/0/0.1.jsonl" finding rule | grep -c processes-left)" 1 'in the record too'
begin $run -- '(sleep 0.1) & : >"$T/up"; exit 0'
wait $L
lacks "$T/run/events/0/0/0.2.jsonl" 'processes-left' 'one that ends by itself is not'

begin $run -- ': >"$T/up"; kill -STOP $$; sleep 30'
sleep 0.2
kill -TERM $L
wait $L
same "$?" 143 'a stopped program is ended too'

# killed in the middle of the second of three datasets
new_run "$T/run" 3 one two three
printf '#!/bin/sh\necho half >"$2/file"\ncase $1 in */two) echo $$ >"$T/pid"; : >"$T/up"; sleep 300 ;; esac\n' >"$T/each"
chmod +x "$T/each"; rm -f "$T/up"
recon-launch --pin "$T/p.pin" $run -- "$T/each" {dataset} {out} >"$T/out" 2>"$T/err" </dev/null &
L=$!
until_true 10 test -e "$T/up" || not_ok 'the second dataset starts' "$(cat "$T/err")"
kill -KILL $L
wait $L 2>/dev/null
if until_true 5 gone "$(cat "$T/pid")"; then ok 'a killed launcher takes its program along'; else not_ok 'the program is left'; fi
same "$(cd "$T/run/out/0" && ls | tr '\n' ' ')" '0 ' 'nothing of the second looks whole'
lacks "$T/run/events/0/0/0.0.jsonl" '"type":"end"' 'no end is recorded'
printf '#!/bin/sh\necho whole >"$2/file"\n' >"$T/each"
tap 0 'run again' recon-launch --pin "$T/p.pin" $run -- "$T/each" {dataset} {out}
same "$(cat "$T/run/out/0/0/file" "$T/run/out/0/1/file" "$T/run/out/0/2/file" | tr '\n' ' ')" 'half whole whole ' 'it completes'

# told to end between datasets
new_run "$T/run" 3 one two three
printf '#!/bin/sh\ntrap "" TERM\n: >"$T/up"\nsleep 0.5\n' >"$T/each"; rm -f "$T/up"
recon-launch --pin "$T/p.pin" $run -- "$T/each" {dataset} >"$T/out" 2>"$T/err" </dev/null &
L=$!
until_true 10 test -e "$T/up"
kill -TERM $L
wait $L
same "$? $(event "$T/run/events/0/0/0.0.jsonl" dataset status | tr '\n' ' ')" '143 done skipped skipped ' 'TERM: the one that runs ends, the rest are skipped'
same "$(event "$T/run/events/0/0/0.0.jsonl" end status)" killed 'the task was killed'

# a terminal: the foreground is shared, so that the program can read there
if command -v script >/dev/null; then
    echo hello | script -qec "recon-launch --pin $T/p.pin -- $sh -c 'read x; echo got \$x' | cat" /dev/null >"$T/out" 2>&1
    has "$T/out" 'got hello' 'reads from a terminal, in a pipeline'
else
    skip 'no script here'
fi

# many at once, each judging
unset RECON_CHECK
i=0
while [ $i -lt 120 ]; do
    recon-launch -v --pin "$T/p.pin" -- "$sh" -c "exit $((i % 50))" >/dev/null 2>"$T/many.$i" &
    eval "p$i=$!"
    i=$((i + 1))
done
bad= i=0
while [ $i -lt 120 ]; do
    eval "wait \$p$i"; st=$?
    [ $st = $((i % 50)) ] || bad="$bad $i:$st"
    i=$((i + 1))
done
same "$bad" '' '120 at once'
cat "$T"/many.* >"$T/many"
lacks "$T/many" 'no answer' 'none ran into a deadline'
finish

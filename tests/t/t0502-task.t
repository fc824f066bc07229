#!/bin/sh
# recon-run over an array slot of a run directory, with fake kernels.
. "${abs_top_srcdir:?}/tests/lib.sh"
K=$abs_top_builddir/lib/pipe/test/kernels
unset RECON_RUN RECON_SUB RECON_TASK FAKE_DEVICES RECON_EVENTS_FD RECON_EVENTS_START RECON_ATTEMPT SLURM_RESTART_COUNT SLURM_JOB_END_TIME
[ -f "$K/cpu.so" ] || skip_all "the fake modules are not built: make check"
cd "$T" || exit 99
mkdir a b d
tool=$abs_top_builddir/lib/pipe/test/make-run
printf '%s\n' '{"path":"a"}' '{"path":"b","make.start":2}' '{"path":"c"}' '{"path":"d","make.strt":2}' '{"path":"a","name":"e"}' >list.jsonl
cat >p.conf <<'P'
version = 1;
steps = (
  { name = "frames"; kernel = "fake.frames"; },
  { name = "make"; kernel = "fake.points"; },
  { name = "sum"; kernel = "fake.sum"; }
);
P
tap 0 'a run directory is made' "$tool" run list.jsonl 3
cp p.conf run/pipeline.conf
task() { recon-run --kernels "$K" --device cpu --run "$T/run" --sub 0 --task "$1"; }

exec 7>>ev.jsonl
tap 65 'a task of three datasets, the last of which is not there' env RECON_EVENTS_FD=7 \
    recon-run --kernels "$K" --device cpu --run "$T/run" --sub 0 --task 0
exec 7>&-
has err "dataset 'c': step 'frames'" 'the failed one is named'
has err '2 done, 1 failed' 'counts'
has run/out/0/0/sum.txt '45.0' 'the first result'
has run/out/0/1/sum.txt '54.0' 'the second, with its column'
[ -f run/out/0/0/recon.json ] && ok 'it holds recon.json' || not_ok 'it holds recon.json'
[ ! -e run/out/0/2 ] && ok 'none of the failed' || not_ok 'none of the failed'
[ -z "$(ls -A run/out/0 | grep '^\.')" ] && ok 'nothing private is left' || not_ok 'nothing private is left' "$(ls -A run/out/0)"
[ "$(grep -c '"type":"dataset"' ev.jsonl)" = 3 ] && ok 'an event for each dataset' || not_ok 'an event for each dataset' "$(cat ev.jsonl)"
[ "$(grep -c '"type":"step"' ev.jsonl)" = 6 ] && ok 'an event for each step' || not_ok 'an event for each step' "$(cat ev.jsonl)"
has ev.jsonl '"path":"sum.txt"' 'an event for each output'
tap 64 'a column that names no parameter' task 1
has err "dataset 'd'" 'the dataset is named'
has err "column 'make.strt': step 'make'" 'and the column'
has err "no parameter 'strt', the nearest is 'start'" 'and the parameter'
has run/out/0/4/sum.txt '45.0' 'the next dataset still ran'
mkdir c
tap 0 'again, when the dataset is there' task 0
has err '3 done, 0 failed, 0 skipped' 'what was published stays done'
tap 0 'the task from the environment' env RECON_RUN="$T/run" RECON_SUB=0 RECON_TASK=0 recon-run --kernels "$K" --device cpu
has err '3 done, 0 failed, 0 skipped' 'is the same task'
tap 64 'a slot that is not there' task 9
tap 64 'no run directory' recon-run --kernels "$K" --device cpu --run "$T/a" --sub 0 --task 0

# killed in the middle: nothing that looks whole, and it completes when run again
tap 0 'another run directory' "$tool" run2 list.jsonl 3
sed 's/make"; kernel = "fake.points"; }/make"; kernel = "fake.points"; },\n { name = "early"; kernel = "fake.sum"; },\n { name = "nap"; kernel = "fake.fault"; params = { what = "sleep"; ms = 20000; }; }/' p.conf >run2/pipeline.conf
recon-run --kernels "$K" --device cpu --run "$T/run2" --sub 0 --task 0 >out 2>err &
pid=$!
i=0; while [ ! -e run2/out/0/.0.0.0.0/sum.txt ] && [ $i -lt 200 ]; do sleep 0.02; i=$((i + 1)); done
[ -e run2/out/0/.0.0.0.0/sum.txt ] && ok 'it works in a private folder' || not_ok 'it works in a private folder' "$(ls -AR run2/out)"
kill -KILL $pid; wait $pid 2>/dev/null
[ ! -e run2/out/0/0 ] && ok 'killed: no result' || not_ok 'killed: no result'
cp p.conf run2/pipeline.conf
rm -r c
tap 65 'run again' recon-run --kernels "$K" --device cpu --run "$T/run2" --sub 0 --task 0
has run2/out/0/0/sum.txt '45.0' 'it completes'

# time
tap 124 'too little time for a further dataset' env SLURM_JOB_END_TIME=1000 recon-run --kernels "$K" --device cpu --run "$T/run2" --sub 0 --task 1
finish

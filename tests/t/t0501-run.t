#!/bin/sh
# recon-run on one dataset, with fake kernels: errors of the pipeline, listings, outputs whole or not at all, statuses.
. "${abs_top_srcdir:?}/tests/lib.sh"
K=$abs_top_builddir/lib/pipe/test/kernels
unset RECON_RUN FAKE_DEVICES RECON_EVENTS_FD
cd "$T" || exit 99
[ -f "$K/cpu.so" ] || skip_all "the fake modules are not built: make check"

pipeline() { printf 'version = 1;\nsteps = (\n%s\n);\n' "$1" >"$T/p.conf"; }
run() { recon-run --kernels "$K" --pipeline "$T/p.conf" --device cpu "$@"; }
MAKE='{ name = "make"; kernel = "fake.points"; }'
SUM='{ name = "sum"; kernel = "fake.sum"; }'
left() { ls -A "$T/$1" 2>/dev/null | grep -v '^[a-z]*\.txt$'; }

# listings
tap 0 'list' recon-run --kernels "$K" --list
has out 'fake.double' 'list names a kernel'
has out 'fake  ' 'list names its module'
tap 0 'describe' recon-run --kernels "$K" --describe fake.points
has out 'start (number, m, -100 .. 100, default 1)' 'describe tells unit, range and default'
has out 'left|right' 'describe tells choices'
tap 64 'describe: unknown kernel' recon-run --kernels "$K" --describe fake.pints
has err "nearest is 'fake.points'" 'describe: names the nearest'
one_line err 'describe: one line'
tap 0 'list as JSON' recon-run --kernels "$K" --list --format json
has out '"kernel": "fake.points"' 'list as JSON names kernels'

# the command line
tap 64 'no pipeline' recon-run --kernels "$K" --out o
tap 64 'unknown option' recon-run --pipelin
tap 64 'unknown shipped pipeline' recon-run --kernels "$K" --pipeline nothing-of-this-name --out o
one_line err 'unknown shipped pipeline: one line'
tap 64 'no kernel folder' recon-run --kernels "$T/none" --list
tap 64 'run without task' recon-run --kernels "$K" --run "$T"
pipeline "$MAKE, $SUM"
tap 64 'no out' run
tap 64 'bad repeat' run --out o --repeat x
tap 64 'repeat of none' run --out o --repeat 0
tap 64 'unexpected argument' run --out o extra
tap 64 'unknown device' run --out o --device toaster

# a run
tap 0 'a run' run --out o
has o/sum.txt '45.0' 'its result'
has err 'fake.points' 'the table tells its steps'
tap 0 'into a folder that exists' run --out o --set make.start=2
has o/sum.txt '54.0' 'the result is replaced'
[ -z "$(left o)" ] && ok 'nothing else is left' || not_ok 'nothing else is left' "$(ls -A o)"
tap 0 'several times, as JSON' run --out o --repeat 3 --format json
[ "$(grep -c '"peak_host"' out)" = 6 ] && ok 'JSON tells steps of all repeats' || not_ok 'JSON tells steps' "$(cat out)"
tap 64 'a bad --set' run --out o2 --set make.strt=2
has err "nearest is 'start'" 'a bad --set: nearest name'
[ ! -e o2 ] && ok 'nothing was made' || not_ok 'nothing was made'
tap 0 'estimate' run --estimate --set make.n=1000000
has out '11.4 MiB' 'estimate tells memory'
tap 0 'events' run --out oe --events ev.jsonl
has ev.jsonl '"type":"step"' 'events hold steps'
has ev.jsonl '"path":"sum.txt"' 'events hold outputs'
has ev.jsonl '"type":"end"' 'events end'
tap 73 'events file exists' run --out oe --events ev.jsonl

# devices
tap 75 'a device that is not here' run --out of --device fake
has err 'FAKE_DEVICES is not set' 'a device that is not here: why'
pipeline "$MAKE, { name = \"twice\"; kernel = \"fake.double\"; }, $SUM"
tap 0 'auto without a device' recon-run --kernels "$K" --pipeline p.conf --out of
tap 0 'on a device' env FAKE_DEVICES=1 recon-run --kernels "$K" --pipeline p.conf --out of --format json
has of/sum.txt '90.0' 'the device gives the same'
has out '"module": "fake"' 'its kernel ran'
has out '"copied_bytes": 36' 'copies are counted'

# failures leave nothing
FAULT='{ name = "bad"; kernel = "fake.fault"; params = { %s }; }'
fault() { pipeline "$MAKE, $SUM, $(printf "$FAULT" "$1")"; }
fault 'what = "fail"; code = 65;'
tap 65 'data that a kernel refuses' run --out of65
has err "step 'bad': 'frame-3': depth 9 is above 4" 'its words'
[ ! -e of65 ] && [ -z "$(ls -A | grep of65)" ] && ok 'no folder is left' || not_ok 'no folder is left' "$(ls -A)"
fault 'what = "warn";'
tap 0 'a warning' run --out ow
has err "warning: 'frame-4': no depth in it" 'is told'
fault 'what = "leak";'
tap 0 'a leak' run --out ow
has err 'kept 100 bytes' 'is told'
fault 'what = "sleep"; ms = 20000;'
tap 124 'a deadline' run --out od --deadline 0.1
recon-run --kernels "$K" --pipeline p.conf --device cpu --out ok >out 2>err &
pid=$!
i=0; while [ -z "$(ls -d .ok.*/sum.txt 2>/dev/null)" ] && [ $i -lt 200 ]; do sleep 0.02; i=$((i + 1)); done
kill -TERM $pid; wait $pid; got=$?
[ $got = 143 ] && ok 'TERM ends it with 143' || not_ok 'TERM ends it with 143' "$got" "$(cat err)"
[ ! -e ok ] && [ -z "$(ls -A | grep '^\.ok')" ] && ok 'and leaves nothing' || not_ok 'TERM leaves nothing' "$(ls -A)"
recon-run --kernels "$K" --pipeline p.conf --device cpu --out ok >out 2>err &
pid=$!
i=0; while [ -z "$(ls -d .ok.*/sum.txt 2>/dev/null)" ] && [ $i -lt 200 ]; do sleep 0.02; i=$((i + 1)); done
kill -KILL $pid; wait $pid 2>/dev/null
[ ! -e ok ] && ok 'KILL leaves nothing that looks whole' || not_ok 'KILL leaves nothing that looks whole' "$(ls -A)"
left=$(ls -d .ok.*)
recon-run --kernels "$K" --pipeline p.conf --device cpu --out ok >out 2>err &
pid=$!
i=0; while [ -z "$(ls -d .ok.*/sum.txt 2>/dev/null | grep -v "^$left/")" ] && [ $i -lt 200 ]; do sleep 0.02; i=$((i + 1)); done
[ ! -e "$left" ] && ok 'the next run removes what the killed one left' || not_ok 'the leftover is removed' "$(ls -A)"
alive=$(ls -d .ok.*)
mkdir .ok.other .ok.00000000.abcdef
fault 'what = "warn";'
tap 0 'and it completes when run again' run --out ok
has ok/sum.txt '45.0' 'with its result'
[ -f "$alive/sum.txt" ] && ok 'what another process is writing stays' || not_ok 'what another writes stays' "$(ls -A)"
[ -d .ok.other ] && [ -d .ok.00000000.abcdef ] && ok 'and what is of another name or host' || not_ok 'other names stay' "$(ls -A)"
kill -TERM $pid; wait $pid 2>/dev/null

# self-tests: a crash is caught
pipeline "$MAKE, $SUM"
tap 0 'self-test' run --selftest
has out '2 passed, 0 failed' 'its count'
tap 134 'self-test of a kernel that dies' recon-run --kernels "$K" --device cpu --selftest
has out 'killed by signal 6' 'is told'
has out '5 passed, 1 failed' 'and the others ran'

# places
pipeline "$MAKE, $SUM"
: >file
tap 73 'out is a file' run --out file
one_line err 'one line'
tap 73 'out below a file' run --out file/x
tap 78 'a module of another ABI' recon-run --kernels "$K/../old" --list
abi=$(sed -n 's/^#define RECON_KERNEL_ABI \([0-9]*\)u$/\1/p' "$abs_top_srcdir/lib/kernels/include/recon/kernel.h")
has err "has ABI 999, this recon-run takes ABI ${abi:?}:" 'both numbers are told'
mkdir -m 777 open
cp "$K/cpu.so" open/ && chmod 777 open
tap 77 'a kernel folder that others may write' recon-run --kernels "$T/open" --list
mkdir broken && printf '%2000s' garbage >broken/cpu.so
tap 75 'a module that is no object' recon-run --kernels "$T/broken" --pipeline p.conf --device cpu --out x
has err 'bytes of text, wanted a shared object' 'the reason is told'
one_line err 'in one line'
# what dlopen would hang on or die of: each is one row of the list, and one line when it is asked for
module() { # WORDS: of broken/cpu.so as it stands
    tap 0 "list with $1" timeout 10 recon-run --kernels "$T/broken" --list
    grep -q "not loaded: .*$1" out && ok 'its row says why' || not_ok "its row says $1" "$(cat out err)"
    tap 75 "run with $1" timeout 10 recon-run --kernels "$T/broken" --pipeline p.conf --device cpu --out x
    has err "$1" 'the line says it'
    one_line err 'one line'
}
bad() { rm -rf broken/cpu.so; "$@"; }
cp "$K/fake.so" broken/fake.so
bad mkfifo broken/cpu.so; module 'a FIFO'
bad mkdir broken/cpu.so; module 'a directory'
bad ln -s /dev/zero broken/cpu.so; [ "$(stat -Lc %a /dev/zero)" = 666 ] || module 'a device'
bad touch broken/cpu.so; module 'an empty file'
for size in 20 100 5000 8000; do
    bad cp "$K/cpu.so" broken/cpu.so; truncate -s $size broken/cpu.so; module 'ELF file'
done
bad cp "$K/cpu.so" broken/cpu.so; printf '\267' | dd of=broken/cpu.so bs=1 seek=18 conv=notrunc 2>/dev/null
module 'another machine'
if [ "$(id -u)" != 0 ]; then
    mkdir -m 555 closed
    tap 73 'out in a folder that may not be written' run --out closed/x
    tap 73 'out is a folder that may not be written' run --out closed
else
    skip 'unwritable folders: root may write everywhere'
fi
finish

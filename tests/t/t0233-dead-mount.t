#!/bin/bash
# A library on a network file system whose server does not answer: the tools end, name the path, and another node is tried.
. "${abs_top_srcdir:?}/tests/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'needs root to mount'
[ -c /dev/fuse ] && /usr/bin/python3 -c 'import fusepy' 2>/dev/null || skip_all 'no FUSE for Python here (python3-fusepy)'
umask 022
mkdir "$T/real" "$T/mnt" "$T/w"
"$abs_top_srcdir/tests/cluster/slowfs" "$T/real" "$T/mnt" 0 >"$T/fs.log" 2>&1 & fs=$!
trap 'kill -CONT $fs 2>/dev/null; umount -l "$T/mnt" 2>/dev/null; kill $fs 2>/dev/null; rm -rf "$T"' EXIT
for i in $(seq 100); do mountpoint -q "$T/mnt" && break; sleep 0.05; done
mountpoint -q "$T/mnt" || skip_all "FUSE does not mount here: $(tail -n 1 "$T/fs.log")"
cd "$T/w" || exit 99
mkdir "$T/real/lib"
echo 'int far(void) { return 0; }' >far.c && ${CC:-cc} -shared -fPIC -o "$T/real/lib/libfar.so" far.c || exit 99
echo 'int far(void); int main(void) { return far(); }' >prog.c && ${CC:-cc} -o prog prog.c -L"$T/real/lib" -lfar -Wl,-rpath,"$T/mnt/lib" || exit 99
unset LD_LIBRARY_PATH
tap 0 'the server answers: check' recon-check prog
tap 0 'capture' recon-pin capture -o p.pin "$T/w/prog"
tap 0 'launch' recon-launch --pin p.pin -- "$T/w/prog"

kill -STOP $fs
sleep 2 # until nothing is remembered of the attributes
one() { # NAME COMMAND...: in the background
    local name=$1 began=$SECONDS; shift
    { timeout 60 "$@" >"$name.out" 2>"$name.err"; echo "$? $((SECONDS - began))" >"$name.end"; } &
}
one check recon-check prog
one json recon-check --format jsonl prog
one received env LD_LIBRARY_PATH="$T/mnt/lib" recon-check "$BASH" # recon-check is static: its own start does not hang
one skip recon-check --skip path-not-answering prog
one launch recon-launch --pin p.pin -- "$T/w/prog"
one capture recon-pin capture -o q.pin "$T/w/prog"
recon-check prog >held.out 2>&1 & held=$! # as by Ctrl-Z, or Slurm's suspending a job
sleep 1
child=$(pgrep -P $held)
kill -STOP $held $child
wait $(jobs -p | grep -vx -e "$fs" -e "$held")
for name in check json received skip launch capture; do
    read -r status seconds <"$name.end"
    if [ "$seconds" -lt 40 ]; then ok "$name ends in bounded time"; else not_ok "$name ends in bounded time" "$seconds s"; fi
    case $name in check | json | received | launch) want=75 ;; *) want=124 ;; esac
    if [ "$status" = $want ]; then ok "$name: its status"; else not_ok "$name: its status" "$status, wanted $want" "$(cat $name.err)"; fi
done
has check.out "path-not-answering: $T/mnt/lib" 'check names the path'
has check.out 'sbatch --exclude=' 'and another node as remedy'
has received.out "path-not-answering: $T/mnt/lib" 'and so it is where the environment names it'
has json.out '"rule":"path-not-answering"' 'as JSON, too'
has json.out '"type":"summary","status":"error"' 'with a summary'
has launch.err "path-not-answering: $T/mnt/lib" 'the launcher names it'
has skip.err "gave no answer within 20000 ms, so nothing was judged" 'a rule that is off still says that nothing was judged'
has capture.err "'$T/mnt/lib" 'capture names it'
if [ -e q.pin ]; then not_ok 'and writes no pin'; else ok 'and writes no pin'; fi
kill -CONT $fs
sleep 1
kill -CONT $held
sleep 1 # it looks at a child that is still stopped
kill -CONT $child
wait $held; status=$?
if [ "$status" = 0 ]; then ok 'the time for which a run was stopped does not count'
else not_ok 'the time for which a run was stopped does not count' "$status" "$(cat held.out)"; fi
tap 0 'the server is back' recon-check prog
finish

#!/bin/sh
# Odd input does not hang, kill or flood: very long search paths, FIFOs, files that shrink while they are read.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
unset LD_LIBRARY_PATH LD_PRELOAD
cd "$T" || exit 99
mkdir lib gone
echo 'int v(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libv.so.1 -xc - -o lib/libv.so.1
echo 'int w(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libgone.so.1 -xc - -o gone/libgone.so.1
echo 'int v(void), w(void); int main(void) { return v() + w() - 2; }' | $CC -xc - -xnone -o prog lib/libv.so.1 gone/libgone.so.1
quick() { # STATUS NAME COMMAND...: ends within 20 s
    want=$1 name=$2; shift 2
    tap "$want" "$name" timeout 20 "$@"
}

awk 'BEGIN { printf "LD_LIBRARY_PATH="; for (i = 0; i < 100000; i++) printf "/nowhere/%d:", i; print "'"$T/lib:$T/gone"'" }' >many.env
quick 0 '100,000 entries, the right ones last' recon-check --env-file many.env --libs ./prog
has out "libgone.so.1 => $T/gone/libgone.so.1" 'are found'
sed "s,:$T/gone,," many.env >less.env
quick 78 '100,000 entries and a library that is nowhere' recon-check --env-file less.env ./prog
if [ "$(wc -c <out)" -lt 100000 ]; then ok 'told in few words'; else not_ok 'told in few words' "$(wc -c <out) bytes"; fi
long=/$(head -c 4088 /dev/zero | tr '\0' a)
echo "LD_LIBRARY_PATH=$long:$T/lib:$T/gone" >long.env
quick 0 'an entry of 4089 characters' recon-check --env-file long.env ./prog
echo "LD_LIBRARY_PATH=$(head -c 60000 /dev/zero | tr '\0' :)$T/lib:$T/gone" >empty.env
quick 0 '60,000 empty entries' recon-check --env-file empty.env ./prog
mkdir fifo; mkfifo fifo/libv.so.1
echo "LD_LIBRARY_PATH=$T/fifo:$T/lib:$T/gone" >fifo.env
quick 75 'a FIFO in the path' recon-check --env-file fifo.env ./prog
has out 'a FIFO' 'is told'
mkdir loop; ln -s libv.so.1 loop/libv.so.1
echo "LD_LIBRARY_PATH=$T/loop:$T/lib:$T/gone" >loop.env
LD_LIBRARY_PATH="$T/loop:$T/lib:$T/gone" ./prog 2>err; loader=$?
timeout 20 recon-check --env-file loop.env ./prog >out 2>&1; mine=$?
if { [ $loader = 0 ] && [ $mine = 0 ]; } || { [ $loader = 127 ] && [ $mine != 0 ]; }; then ok 'a symlink to itself, as ld.so takes it'
else not_ok 'a symlink to itself' "ld.so $loader, recon-check $mine" "$(head -c 500 out)"; fi

# a library that shrinks and grows while it is read
{ echo 'const char big[4000000] = { 1 };'; i=0; while [ $i -lt 3000 ]; do echo "int symbol_$i(void) { return $i; }"; i=$((i + 1)); done; } |
    $CC -shared -fPIC -Wl,-soname,libv.so.1 -xc - -o whole.so
mkdir race; cp whole.so race/libv.so.1
( while [ ! -e stop ]; do truncate -s 5000 race/libv.so.1; cat whole.so >race/libv.so.1; done ) &
echo "LD_LIBRARY_PATH=$T/race:$T/gone" >race.env
bad=
i=0
while [ $i -lt 60 ]; do
    timeout 20 recon-check --env-file race.env ./prog >out 2>&1; got=$?
    case $got in 0 | 75 | 78) ;; *) bad="$bad $got" ;; esac
    i=$((i + 1))
done
: >stop; wait
if [ -z "$bad" ]; then ok 'a library that shrinks while it is read'; else not_ok 'a library that shrinks while it is read' "status$bad"; fi
finish

#!/bin/sh
# recon-pin: capture, show, verify; what changes on the node is named, one line each.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME

cd "$T" || exit 99
mkdir lib lib2
echo 'int v(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libv.so.1 -xc - -o lib/libv.so.1
cp lib/libv.so.1 lib2/; rm probe.so
echo 'int v(void); int main(void) { return v() - 1; }' | $CC -xc - -xnone -o prog lib/libv.so.1
echo 'int v(void); int m(void) { return v(); }' | $CC -shared -fPIC -xc - -xnone -o mod.so lib/libv.so.1
export LD_LIBRARY_PATH="$T/lib" CUDA_HOME=/opt/cuda LOADEDMODULES=gcc/12:cuda/13 NCCL_DEBUG=INFO

tap 0 'capture' recon-pin capture -o a.pin --env 'NCCL_*' ./prog mod.so
has a.pin "soname = \"libv.so.1\"; path = \"$T/lib/libv.so.1\"; needed_by = ( 0, " 'who needs a library'
has a.pin 'why = "ld_library_path"; found_in = 0' 'why it was found'
has a.pin 'role = "module"' 'the module'
has a.pin '{ name = "LD_PRELOAD"; how = "unset"; }' 'LD_PRELOAD is unset on the node'
has a.pin '{ name = "NCCL_DEBUG"; how = "set"; value = "INFO"; }' '--env with a pattern'
has a.pin 'modules = [ "gcc/12", "cuda/13" ]' 'environment modules'
cp a.pin "$T/again"
tap 0 'standard output is the default' recon-pin capture --env 'NCCL_*' ./prog mod.so
has out 'role = "program"' 'and holds the pin'
tap 0 'a program by name' recon-pin capture -o sh.pin sh
has sh.pin "path = \"$(command -v sh)\"" 'is found in PATH'

tap 0 'show' recon-pin show a.pin
has out 'files      ' 'show: a summary'
has out 'variable   LD_PRELOAD is unset' 'show: variables'
tap 0 'show --libs' recon-pin show --libs a.pin
has out "libv.so.1 => $T/lib/libv.so.1 (ld_library_path)" 'show --libs: as ldd'

tap 0 'verify: nothing changed' recon-pin verify a.pin
has out 'no difference' 'verify says so'
tap 75 'another value of a variable' env CUDA_HOME=/opt/other recon-pin verify a.pin
has out "env-drift: CUDA_HOME: is '/opt/other' here, the pin has '/opt/cuda'" 'is named with both values'
tap 75 'a stray LD_PRELOAD of the node' env LD_PRELOAD= recon-pin verify a.pin
has out 'env-drift: LD_PRELOAD' 'is named'
tap 75 'the variable is not needed to find the library' env -u LD_LIBRARY_PATH recon-pin verify a.pin
lacks out 'lib-' 'the pin brings it'

cp lib/libv.so.1 keep
printf x >>lib/libv.so.1
tap 75 'a changed library' recon-pin verify a.pin
has out "lib-changed: libv.so.1: '$T/lib/libv.so.1' has $(wc -c <lib/libv.so.1) bytes, the pin has $(wc -c <keep)" 'both sizes'
cp keep lib/libv.so.1; printf '\1' | dd of=lib/libv.so.1 bs=1 seek=9000 conv=notrunc 2>/dev/null
tap 75 'one changed byte' recon-pin verify a.pin
has out 'lib-changed: libv.so.1' 'is found by the digest'
tap 0 '--quick does not read it' recon-pin verify --quick a.pin
rm lib/libv.so.1
tap 75 'a missing library: a node where the pin says it is may do' recon-pin verify a.pin
has out "lib-not-found: libv.so.1: was not found, the pin has '$T/lib/libv.so.1'; looked at $T/lib/libv.so.1 (no such file)" 'and where it was looked for'
tap 75 '--format jsonl' env -u CUDA_HOME recon-pin verify --format jsonl a.pin
has out '"rule":"lib-not-found","level":"error","scope":"node","object":"libv.so.1"' 'the same as finding'
has out '"remedy":"sbatch --exclude=' 'with a remedy'
has out '"cause":"the node lacks what the pin promised"' 'and a cause'
has out '"rule":"env-not-exported","level":"warn","scope":"job","object":"CUDA_HOME"' 'the environment is the job'"'"'s'
has out "export CUDA_HOME='/opt/cuda'" 'and how it comes back'
tail -1 out >last; has last '"type":"summary","status":"error"' 'and a summary'
tap 75 'the launcher says the same' recon-launch --pin a.pin --check-only
echo hello >lib/libv.so.1
tap 75 'text in its place' recon-pin verify a.pin
has out "lib-corrupt: libv.so.1: '$T/lib/libv.so.1' is 6 bytes of text" 'is told'
cp keep lib/libv.so.1
mv prog gone
tap 75 'the program is gone' recon-pin verify a.pin
has out "lib-not-found: $T/prog" 'is named'
mv gone prog
tap 0 'all back' recon-pin verify a.pin
chmod 666 a.pin
tap 77 'a pin that others may write: verify' recon-pin verify a.pin
tap 77 'recon-check' recon-check --pin a.pin
tap 77 'recon-launch' recon-launch --pin a.pin --check-only
has err "a.pin'" 'names it'
chmod 644 a.pin

# refused
tap 78 'capture refuses what does not resolve' env -u LD_LIBRARY_PATH recon-pin capture -o b.pin ./prog
has err "'libv.so.1', which '$T/prog' needs, was not found; looked at /" 'and names it and where it was looked for'
one_line err 'in one line'
tap 1 'and writes nothing' test -e b.pin
tap 0 '--allow-missing' env -u LD_LIBRARY_PATH recon-pin capture --allow-missing -o b.pin ./prog
has b.pin 'soname = "libv.so.1"; needed_by = ( 0 ); why = "not-found"' 'records it without a path'
tap 127 'no such program' recon-pin capture -o c.pin ./nothing
one_line err 'one line'
echo hello >text
tap 65 'a text as program' recon-pin capture -o c.pin ./text
has err 'is 6 bytes of text' 'is told'
mkfifo fifo
tap 65 'a FIFO as program' recon-pin capture -o c.pin ./fifo
tap 74 'a FIFO as pin' recon-pin show fifo
tap 127 'no such pin' recon-pin verify nothing.pin
tap 64 'no pin' recon-pin show text
has err 'text:' 'with file and line'
tap 64 'no command' recon-pin
tap 64 'an unknown command' recon-pin captur
has err "the nearest is 'capture'" 'names the nearest'
tap 64 'an unknown format' recon-pin verify --format xml a.pin
if [ "$(id -u)" != 0 ]; then
    mkdir ro; chmod a-w ro
    tap 73 'a folder that cannot be written' recon-pin capture -o ro/a.pin ./prog
else
    tap 73 'a folder that is not there' recon-pin capture -o ro/a.pin ./prog
fi
one_line err 'one line'

# a script is a program, too
printf '#!%s/prog\n' "$T" >script; chmod +x script
tap 0 'a script' recon-pin capture -o s.pin ./script
has s.pin "role = \"program\"; path = \"$T/script\"" 'is the program'
has s.pin 'soname = "libv.so.1"' 'and its interpreter is resolved'
tap 0 'and verified' recon-pin verify s.pin

# the pages
awk '/^```$/ { n++; next } n == 1' "$abs_top_srcdir/doc/format-pin.md" >page.pin
tap 0 'the example of doc/format-pin.md' recon-pin show page.pin
recon-pin --help | grep -o -e '--[a-z-]*' | sort -u | sed 's/^--//' >options
missing=
while read -r o; do
    grep -q -e "Fl -$o" "$abs_top_srcdir/man/recon-pin.1" || missing="$missing --$o"
done <options
if [ -s options ] && [ -z "$missing" ]; then ok 'every option stands in the manual'; else not_ok 'every option stands in the manual' "$missing"; fi

# names are escaped for the terminal
d=$(printf 'a\033[31mb'); mkdir "$d"; cp prog "$d/prog"
tap 0 'an odd name' recon-pin capture -o o.pin "./$d/prog"
tap 0 'is shown' recon-pin show o.pin
has out 'a\x1b[31mb/prog' 'escaped'
finish

#!/bin/sh
# recon-pin diff and export: what an upgrade changes; the environment in the languages of other tools.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME LOADEDMODULES
cd "$T" || exit 99
mkdir a b
for d in a b; do echo "int v(void) { return sizeof(\"$d\"); } int $d;" | $CC -shared -fPIC -Wl,-soname,libv.so.1 -xc - -o $d/libv.so.1; done
echo 'int v(void); int main(void) { return v() - 2; }' | $CC -xc - -xnone -o prog a/libv.so.1
odd=$(printf 'a b\047c"d$HOME`x`\\e[f]{g}\nh')
export ODD="$odd" CUDA_HOME=/opt/cuda-12
tap 0 'first' env LD_LIBRARY_PATH="$T/a" LOADEDMODULES=gcc/12:cuda/12 recon-pin capture -o a.pin --env ODD ./prog
tap 0 'second' env LD_LIBRARY_PATH="$T/b" LOADEDMODULES=gcc/12:cuda/13 CUDA_HOME=/opt/cuda-13 recon-pin capture -o b.pin --env ODD ./prog
tap 0 'a pin and itself' recon-pin diff a.pin a.pin
tap 1 'two that differ' recon-pin diff a.pin b.pin
has out "variable: CUDA_HOME: '/opt/cuda-12' became '/opt/cuda-13'" 'a variable'
has out "file: libv.so.1: '$T/a/libv.so.1' became '$T/b/libv.so.1'" 'a file'
has out 'content: libv.so.1' 'and what is in it'
has out "module: cuda/13: only in the second" 'a module'
lacks out ODD 'what is the same is not told'
lacks out libc.so.6 'nor a library'
tap 1 'as JSON' recon-pin diff --format jsonl a.pin b.pin
has out '{"v":1,"type":"difference","kind":"variable","object":"CUDA_HOME"' 'one object a line'
tap 64 'one pin alone' recon-pin diff a.pin

tap 0 'for the shell' recon-pin export --format sh a.pin
cp out env.sh
got=$(env -i sh -c '. ./env.sh; printf "%s" "$ODD"'; echo .); expect=$(printf '%s.' "$odd")
if [ "$got" = "$expect" ]; then ok 'the shell reads the value back'; else not_ok 'the shell reads the value back' "$got" "$expect"; fi
tap 0 'sh is the default' recon-pin export a.pin
if cmp -s out env.sh; then ok 'the same'; else not_ok 'the same'; fi
tap 0 'for sbatch' recon-pin export --format sbatch a.pin
has out '#!/bin/bash' 'a script'; has out 'export SLURM_EXPORT_ENV=ALL' 'steps get it'
if bash -n out 2>err; then ok 'that bash parses'; else not_ok 'that bash parses' "$(cat err)"; fi
tap 0 'for Lmod' recon-pin export --format lmod a.pin
has out 'setenv("CUDA_HOME", "/opt/cuda-12")' 'setenv'
has out "setenv(\"LD_LIBRARY_PATH\", \"$T/a\")" 'a path'
if command -v lua >lua || command -v lua5.3 >lua || command -v luajit >lua; then
    { echo 'function setenv(n, v) if n == "ODD" then io.write(v) end end function unsetenv() end function whatis() end'; cat out; } >m.lua
    got=$("$(cat lua)" m.lua; echo .)
    if [ "$got" = "$expect" ]; then ok 'Lua reads the value back'; else not_ok 'Lua reads the value back' "$got"; fi
else
    skip 'wants lua'
fi
tap 0 'for environment modules' recon-pin export --format tcl a.pin
has out '#%Module1.0' 'a module file'
if command -v tclsh >tcl; then
    { echo 'proc setenv {n v} { if {$n eq "ODD"} { puts -nonewline $v } }; proc unsetenv {n} {}; proc module-whatis {t} {}'; cat out; } >m.tcl
    got=$(tclsh m.tcl; echo .)
    if [ "$got" = "$expect" ]; then ok 'Tcl reads the value back'; else not_ok 'Tcl reads the value back' "$got"; fi
else
    skip 'wants tclsh'
fi
tap 0 'as .env' recon-pin export --format dotenv a.pin
has out "CUDA_HOME='/opt/cuda-12'" 'a line'
tap 64 'another form' recon-pin export --format xml a.pin
has err 'wanted sh, sbatch, lmod, tcl, dotenv, conda-explicit or requirements' 'is refused'; one_line err 'in one line'
tap 0 'into a file' recon-pin export -o f.sh a.pin
if cmp -s f.sh env.sh; then ok 'the same text'; else not_ok 'the same text'; fi
sed 's/how = "set"; value = "\/opt\/cuda-12"/how = "prepend"; value = "\/opt\/cuda-12"/' a.pin >p.pin
tap 0 'what is put before' recon-pin export p.pin
cp out p.sh; got=$(CUDA_HOME=/x sh -c '. ./p.sh; echo "$CUDA_HOME"'); got2=$(env -u CUDA_HOME sh -c '. ./p.sh; echo "$CUDA_HOME"')
if [ "$got" = /opt/cuda-12:/x ] && [ "$got2" = /opt/cuda-12 ]; then ok 'stands before'; else not_ok 'stands before' "$got" "$got2"; fi
finish

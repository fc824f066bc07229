#!/bin/sh
# recon-check --host: what a program opens later is judged in its scope, in order; compiled modules of Python packages.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD LD_BIND_NOW PYTHONPATH
cd "$T" || exit 99

mkdir a b
echo 'int served(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libserve.so.1 -xc - -o a/libserve.so.1
echo 'int api(void) { return 1; } int main(void) { return 0; }' | $CC -rdynamic -xc - -o prog
echo 'int api(void), served(void); int p1(void) { return api() + served(); }' |
    $CC -shared -fPIC -xc - -xnone -o p1.so a/libserve.so.1 -Wl,-rpath,'$ORIGIN/a'
echo 'int api(void), served(void); int p2(void) { return api() + served(); }' | $CC -shared -fPIC -xc - -xnone -o p2.so a/libserve.so.1
echo 'int nowhere(void); int p3(void) { return nowhere(); }' | $CC -shared -fPIC -Wl,-z,now -xc - -o p3.so

tap 0 'symbols of the program serve a plugin' recon-check --host ./prog --format jsonl --libs ./p1.so
lacks out symbol-missing 'nothing is missing'
tap 78 'a plugin that finds its library nowhere' recon-check --host ./prog --format jsonl ./p2.so
has out '"rule":"lib-not-found"' 'is told'
tap 0 'what one plugin loaded serves the next' recon-check --host ./prog --format jsonl --libs ./p1.so ./p2.so
has out '"why":"loaded","needed_by":"'"$T/./p2.so" 'as loaded'
tap 0 'also in the other order' recon-check --host ./prog --format jsonl ./p2.so ./p1.so
tap 78 'a symbol that no one has' recon-check --host ./prog --format jsonl ./p1.so ./p3.so
has out "'nowhere'" 'is named'
tap 64 'not with --pin' recon-check --host ./prog --pin x.pin
one_line err 'one line'

# a Python that is only files
py=$T/py sp=$T/venv/lib/python3.11/site-packages
mkdir -p $py/bin $py/lib/python3.11/site-packages venv/bin $sp/pkg/sub $sp/old
echo 'int PyThing(void) { return 1; } int main(void) { return 0; }' | $CC -rdynamic -xc - -o $py/bin/python3.11
: >$py/lib/python3.11/os.py
ln -s $py/bin/python3.11 venv/bin/python3
printf 'home = %s/bin\ninclude-system-site-packages = false\n' "$py" >venv/pyvenv.cfg
mod() { echo "int PyThing(void); int PyInit_$2(void) { return PyThing(); } ${3:-}" | $CC -shared -fPIC -xc - -o "$1"; }
mod $sp/pkg/_C.cpython-311-x86_64-linux-gnu.so _C
mod $sp/pkg/_C.cpython-310-x86_64-linux-gnu.so _C
mod $sp/pkg/sub/plain.so plain
mod $sp/pkg/sub/lim.abi3.so lim
echo 'int f(void) { return 1; }' | $CC -shared -fPIC -xc - -o $sp/pkg/libhelp.so
mod $sp/old/_C.cpython-310-x86_64-linux-gnu.so _C
tap 0 'a package' recon-check --host venv/bin/python3 --package pkg --format jsonl --libs
for m in _C.cpython-311-x86_64-linux-gnu.so sub/plain.so sub/lim.abi3.so; do has out "\"$sp/pkg/$m\",\"why\":\"path\"" "module $m"; done
lacks out cpython-310 'those of another version are left out'
lacks out libhelp 'and what is no module'
tap 78 'a package for another version' recon-check --host venv/bin/python3 --package old
has err 'cpython-310' 'is told'; one_line err 'one line'
tap 127 'no such package' recon-check --host venv/bin/python3 --package none
has err "no package 'none'" 'is told'
mkdir other; mkdir other/path; mod other/path/alone.cpython-311-x86_64-linux-gnu.so alone
tap 0 'PYTHONPATH, a single module' env PYTHONPATH="$T/other/path" recon-check --host venv/bin/python3 --package alone
echo "$T/other/path" >$sp/x.pth
tap 0 'a .pth file' recon-check --host venv/bin/python3 --package alone --format jsonl --libs
has out 'alone.cpython-311' 'leads to the module'
mod $sp/pkg/bad.cpython-311-x86_64-linux-gnu.so bad 'int PyGone(void); int z(void) { return PyGone(); }'
tap 78 'Python binds at once' recon-check --host venv/bin/python3 --package pkg --format jsonl
has out "'PyGone'" 'so a function is an error'
printf '#!/bin/sh\n' >shim; chmod +x shim
tap 65 'a shim is no interpreter' recon-check --host ./shim --package pkg
has err 'sys.executable' 'and the remedy is told'
finish

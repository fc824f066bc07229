#!/bin/sh
# Python packages: which compiled modules an import loads, by the text of the package; a pin of them; what Python code opens itself.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD LD_BIND_NOW PYTHONPATH VIRTUAL_ENV CONDA_PREFIX LMOD_CMD MODULES_CMD
cd "$T" || exit 99
export XDG_CACHE_HOME="$T/cache"

# a Python that is only files, in a venv
py=$T/py sp=$T/venv/lib/python3.11/site-packages
mkdir -p $py/bin $py/lib/python3.11/site-packages venv/bin $sp/rec/sub $sp/dep $sp/ns/core $sp/nvidia/thing/lib gone
echo 'int PyThing(void) { return 1; } int main(void) { return 0; }' | $CC -rdynamic -xc - -o $py/bin/python3.11
: >$py/lib/python3.11/os.py
ln -s $py/bin/python3.11 venv/bin/python3
printf 'home = %s/bin\ninclude-system-site-packages = false\n' "$py" >venv/pyvenv.cfg
ext=cpython-311-x86_64-linux-gnu.so
mod() { # FILE NAME [LIBRARY]
    echo "int PyThing(void); int PyInit_$2(void) { return PyThing(); } ${4:-}" | $CC -shared -fPIC -xc - -xnone -o "$1" -Wl,--no-as-needed ${3:+"$3"}
}
echo 'int far(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libfar.so.1 -xc - -o gone/libfar.so.1
echo 'int own(void) { return 1; }' | $CC -shared -fPIC -Wl,-soname,libown.so.1 -xc - -o $sp/dep/libown.so.1
mod $sp/rec/_first.$ext _first
mod $sp/rec/sub/_deep.$ext _deep
mod $sp/rec/_raises.$ext _raises
mod $sp/rec/_else.$ext _else
mod $sp/rec/_optional.$ext _optional gone/libfar.so.1
mod $sp/rec/_never.$ext _never gone/libfar.so.1
echo 'int PyThing(void); int PyInit__dep(void) { return PyThing(); }' |
    $CC -shared -fPIC -xc - -xnone -o $sp/dep/_dep.$ext -Wl,--no-as-needed $sp/dep/libown.so.1 '-Wl,-rpath,$ORIGIN'
echo 'from . import _dep' >$sp/dep/__init__.py
cat >$sp/rec/__init__.py <<'P'
"""from . import _never  (a text)"""
# from . import _never
import os, \
    dep as _d
from . import (_first,   # not: from . import _never
               nothing_of_the_kind)
text = '''
from . import _never
'''
def f():
    from . import _never
try:
    from . import _raises
except ImportError as e:
    raise ImportError("broken") from e
if f is None:
    from . import _never
else:
    from rec import _else
try:
    from . import _optional
except ImportError:
    _optional = None
from .sub.inner import thing
P
: >$sp/rec/sub/__init__.py
printf 'from . import _deep\nfrom .. import _first\nthing = 1\n' >$sp/rec/sub/inner.py
needed_of() { sed -n 's/.*"soname":"[^"]*\/\([a-z_]*\)\.cpython[^"]*",.*"why":"path".*/\1/p' | tr '\n' ' '; }
needed() { needed_of <out; }

tap 0 'a package with an optional module that lacks a library' recon-check --host venv/bin/python3 --package rec --libs --format jsonl
got=$(needed)
if [ "$got" = '_dep _first _raises _else _deep _never _optional ' ]; then ok 'modules in the order of the imports, others after them'; else not_ok 'modules in the order of the imports, others after them' "$got"; fi
got=$(grep '"optional":true' out | needed_of)
if [ "$got" = '_never _optional ' ]; then ok 'and JSON tells which these are'; else not_ok 'and JSON tells which these are' "$got"; fi
has out '"rule":"lib-not-found","level":"warn"' 'what no import needs is a warning'
has out 'an error once one is imported' 'that says so'
has out '"path":"'$sp/dep/libown.so.1'","why":"runpath"' 'what the package imports is loaded, too'
mod $sp/rec/_raises.$ext _raises gone/libfar.so.1
tap 78 'a module that the import needs' recon-check --host venv/bin/python3 --package rec --format jsonl
has out '"rule":"lib-not-found","level":"error","scope":"job","object":"libfar.so.1"' 'is an error'
mod $sp/rec/_raises.$ext _raises
tap 78 'a module by its path' recon-check --host venv/bin/python3 $sp/rec/_optional.$ext
tap 0 'one that is found' env LD_LIBRARY_PATH="$T/gone" recon-check --host venv/bin/python3 --package rec
lacks out lib-not-found 'nothing is said'
echo 'from . import _core' >$sp/ns/core/__init__.py
mod $sp/ns/core/_core.$ext _core
mod $sp/ns/core/_other.$ext _other gone/libfar.so.1
tap 0 'a folder of packages' recon-check --host venv/bin/python3 --package ns --libs --format jsonl
if [ "$(needed)" = '_core _other ' ]; then ok 'each is imported'; else not_ok 'each is imported' "$(needed)"; fi

cp gone/libfar.so.1 $sp/nvidia/thing/lib/
tap 0 'a library in a folder of packages' recon-check --host venv/bin/python3 --package rec --format jsonl --libs
has out '"rule":"lib-not-found","level":"warn","scope":"job","object":"libfar.so.1"' 'is a warning'
has out '"hint":"python-opens-it"' 'with its hint'
has out "\"path\":\"$sp/nvidia/thing/lib/libfar.so.1\"" 'and is taken'
rm $sp/nvidia/thing/lib/libfar.so.1

# a pin
tap 0 'capture --package' recon-pin capture -o a.pin --prefix venv --package rec
has err "module '$sp/rec/_optional.$ext' is left out, its package may do without: 'libfar.so.1'" 'an optional module that cannot be loaded is left out'
lacks a.pin '_never' 'and not pinned'
has a.pin "prefix = \"$T/venv\"" 'the prefix'
has a.pin "name = \"VIRTUAL_ENV\"; how = \"set\"; value = \"$T/venv\"" 'as if it were active'
has a.pin "name = \"PATH\"; how = \"set\"; value = \"$T/venv/bin:" 'first in PATH'
has a.pin "role = \"program\"; path = \"$T/venv/bin/python3\"" 'its interpreter is the program'
has a.pin "role = \"module\"; path = \"$sp/dep/_dep.$ext\"" 'what the import brings'
PATH="$T/venv/bin:$PATH"; export VIRTUAL_ENV="$T/venv"
sed -i 's/^.*name = "PATH".*$/  { name = "SEEN"; how = "unset"; },/' a.pin
tap 0 'verify' recon-pin verify a.pin
tap 0 'the launcher' recon-launch --pin a.pin -- venv/bin/python3 -c 'import rec'
lacks err 'not-checked' 'has judged the interpreter'
mv $sp/dep/libown.so.1 keep
tap 75 'without a library of a module' recon-launch --pin a.pin --check-only
has out "lib-not-found: libown.so.1" 'it is named'
mv keep $sp/dep/libown.so.1
tap 127 'no such package' recon-pin capture -o b.pin venv/bin/python3 --package none
one_line err 'one line'
tap 1 'nothing is written' test -e b.pin
tap 127 'a prefix that is none' recon-pin capture -o b.pin --prefix gone --package rec
has err 'is no venv (pyvenv.cfg) and no conda environment (conda-meta)' 'is told'
cp -r venv/lib $T/lib2; mkdir -p conda/conda-meta conda/bin; cp -r py/lib conda/; cp py/bin/python3.11 conda/bin/; ln -s python3.11 conda/bin/python3
tap 0 'a conda prefix' recon-pin capture -o c.pin --prefix conda conda/bin/python3
has c.pin "name = \"CONDA_PREFIX\"; how = \"set\"; value = \"$T/conda\"" 'is set'
lacks c.pin "VIRTUAL_ENV\"; how = \"set\"" 'and no venv with it'

# what a module of the process brought serves the next, also when nothing is searched again
echo 'int far(void); int PyInit_late(void) { return far(); }' | $CC -shared -fPIC -xc - -xnone -o late.so gone/libfar.so.1
echo 'int far(void); int PyInit_soon(void) { return far(); }' | $CC -shared -fPIC -xc - -xnone -o soon.so gone/libfar.so.1 -Wl,-rpath,"$T/gone"
tap 0 'two modules, the first brings the library' recon-pin capture -o two.pin venv/bin/python3 soon.so late.so
tap 0 'verified in that order' recon-pin verify two.pin
tap 0 'and launched' recon-launch --pin two.pin --check-only
touch gone; tap 0 'and searched again' recon-launch --pin two.pin --check-only
tap 78 'the other alone' recon-pin capture -o one.pin venv/bin/python3 late.so

# digests are remembered
cat cache/recon/digests >before 2>/dev/null || : >before
cp gone/libfar.so.1 lib.so; touch -d '1 hour ago' lib.so; tap 0 'a file just made' recon-pin capture -o d.pin venv/bin/python3 lib.so
lacks cache/recon/digests "$T/lib.so" 'is not remembered, its ctime is now'
if grep -q "$(readlink -f /lib64/ld-linux-x86-64.so.2 2>/dev/null || echo none)\|/libc\." cache/recon/digests; then ok 'older ones are'; else not_ok 'older ones are' "$(cat cache/recon/digests)"; fi
libc=$(sed -n 's/.* \(\/.*\/libc\.so\.6\)$/\1/p' cache/recon/digests)
if [ -n "$libc" ]; then
    right=$(sed -n "s|^\(xxh3:[0-9a-f]*\) .* $libc\$|\1|p" cache/recon/digests)
    sed -i "s|^xxh3:[0-9a-f]*\( .* $libc\)\$|xxh3:0123456789abcdef\1|" cache/recon/digests
    tap 0 'what is remembered' recon-pin capture -o d.pin venv/bin/python3
    has d.pin 'xxh3:0123456789abcdef' 'is taken while the file is the same'
    sed -i "s|^\(xxh3:[0-9a-f]* [0-9]* \)[0-9]*\( .* $libc\)\$|\11\2|" cache/recon/digests
    tap 0 'with another time' recon-pin capture -o d.pin venv/bin/python3
    has d.pin "$right" 'the file is read'
    sed -i "s|^xxh3:[0-9a-f]*\( .* $libc\)\$|xxh3:0123456789abcdef\1|" cache/recon/digests
    tap 0 'verify' recon-pin verify d.pin
    chmod 666 cache/recon/digests
    tap 0 'a memory that others may write' recon-pin capture -o d.pin venv/bin/python3
    lacks d.pin 'xxh3:0123456789abcdef' 'is not believed'
else
    skip 'libc.so.6 is not where it was thought'
fi
echo garbage >cache/recon/digests; chmod 600 cache/recon/digests
tap 0 'a damaged memory costs nothing' recon-pin capture -o d.pin venv/bin/python3
tap 0 'nor does none' env -u HOME XDG_CACHE_HOME=relative recon-pin capture -o d.pin venv/bin/python3

# environment modules
cat >lmod <<'P'
#!/bin/sh
# as lmod: SHELL load NAME...
[ "$1 $2" = 'bash load' ] || exit 3
shift 2
for m; do [ "$m" = "cuda/13 'x'" ] || [ "$m" = gcc/12 ] || { echo "Lmod has detected the following error: $m unknown" >&2; echo false; exit 1; }; done
echo "export LOADEDMODULES='gcc/12:cuda/13'; export CUDA_HOME='/opt/cuda 13';"
P
chmod +x lmod
tap 0 'capture --module' env LMOD_CMD="$T/lmod" recon-pin capture -o m.pin --module gcc/12 --module "cuda/13 'x'" venv/bin/python3
has m.pin 'modules = [ "gcc/12", "cuda/13" ]' 'what is loaded then'
has m.pin 'name = "CUDA_HOME"; how = "set"; value = "/opt/cuda 13"' 'and what it sets'
tap 127 'a module that is not there' env LMOD_CMD="$T/lmod" recon-pin capture -o n.pin --module no/such venv/bin/python3
has err "'no/such' cannot be loaded (status 1): Lmod has detected" 'is named, with what Lmod says'
one_line err 'one line'
tap 1 'nothing is written' test -e n.pin
tap 127 'without a module command' recon-pin capture -o n.pin --module gcc/12 venv/bin/python3
has err 'neither LMOD_CMD nor MODULES_CMD' 'is told'
finish

#!/bin/sh
# The files that a real import opens, as the loader tells them (LD_DEBUG=files), are those that recon-check --host names.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD LD_BIND_NOW LD_DEBUG PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX
cd "$T" || exit 99
python3 -m venv --without-pip venv 2>/dev/null && venv/bin/python3 -c 'import ctypes, sysconfig; exit(bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' 2>/dev/null ||
    skip_all 'wants python3 with venv and ctypes'
imports=$abs_top_srcdir/tests/t/host_imports.py check=$abs_top_builddir/bin/recon-check
site=$(echo "$T"/venv/lib/python3*/site-packages)
suffix=$(venv/bin/python3 -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')

# module PACKAGE NAME LIBRARY: a compiled module, made without Python's headers: a PyModuleDef of 13 words
module() {
    lib "$site/$1/$2$suffix" "$2.so" "void *PyModule_Create2(void *, int);
static void *def[13] = { (void *)1, 0, 0, 0, 0, \"$2\", 0, (void *)-1 };
void *PyInit_$2(void) { return PyModule_Create2(def, 1013); }" -Wl,--no-as-needed "$3" -Wl,-rpath,'$ORIGIN/../solve.libs'
}
mkdir -p "$site/solve.libs" "$site/solve"
lib "$site/solve.libs/libdeep.so.1" libdeep.so.1 'int deep(void) { return 1; }'
lib "$site/solve.libs/libcore.so.1" libcore.so.1 'int core(void) { return 1; }' -Wl,--no-as-needed "$site/solve.libs/libdeep.so.1" -Wl,-rpath,'$ORIGIN'
lib "$site/solve.libs/libextra.so.1" libextra.so.1 'int extra(void) { return 1; }'
module solve _core "$site/solve.libs/libcore.so.1"
module solve _lazy "$site/solve.libs/libextra.so.1"
module other _other "$site/solve.libs/libdeep.so.1"
echo 'from . import _other' >"$site/other/__init__.py"
cat >"$site/solve/__init__.py" <<'P'
from . import _core
def late():
    from . import _lazy
P
total() { # NAME NUMBER: of the last line
    if tail -n 1 out | grep -q "\\b$1 $2\\b"; then ok "$1 $2"; else not_ok "$1 $2" "$(cat out)"; fi
}
tap 0 'a package of two modules' python3 "$imports" --files -v "$check" venv/bin/python3 solve
total 'modules' 2
has out 'solve: 2 modules, 1 loaded by the import alone' 'the import opens one'
total 'required-unopened' 0; total 'elsewhere' 0; total 'program' 0; total 'module' 0
has out 'later 2' 'the other one comes later, with its library'

# what the loader opens of other packages, by ctypes and by libraries is told apart
lib "$site/solve.libs/libplug.so" libplug.so '#include <dlfcn.h>
__attribute__((constructor)) static void f(void) { dlopen("libbare.so.3", RTLD_NOW); dlopen("libnone.so.4", RTLD_NOW); }' -Wl,-rpath,"$T/bare"
lib "$T/bare/libbare.so.3" libbare.so.3 'int bare(void) { return 1; }'
cat >"$site/solve/__init__.py" <<'P'
from . import _core
import ctypes, os
ctypes.CDLL(os.path.dirname(__file__) + '/../solve.libs/libplug.so')
if os.environ.get('SOLVE_OTHER', '1') == '1':
    import other
P
tap 0 'a package that opens more' python3 "$imports" --files -v "$check" venv/bin/python3 solve
has out "ctypes $(realpath "$site")/solve.libs/libplug.so by " 'by ctypes'
has out "library $(realpath "$T")/bare/libbare.so.3 by " 'by a library'
has out 'vain libnone.so.4 by ' 'what is not there'
has out "module $(realpath "$site")/other/_other$suffix by " 'a module that the text does not tell'
total 'elsewhere' 0

# a library that the package's code opens first stands in the way of the one that the loader would take
lib "$T/first/libcore.so.1" libcore.so.1 'int core(void) { return 1; }'
printf 'import ctypes\nctypes.CDLL("%s/first/libcore.so.1")\nfrom . import _core\n' "$T" >"$site/solve/__init__.py"
tap 1 'another file of that name was opened before' python3 "$imports" --files "$check" venv/bin/python3 solve
has out "elsewhere: ['$(realpath "$T")/first/libcore.so.1 by " 'is a difference'
total 'elsewhere' 1
finish

"""Python packages, as a real import loads them and as recon-check --host predicts.

host_imports.py [-v] [--files] RECON_CHECK PYTHON PACKAGE[+PACKAGE...] ...: for each package (or several, imported in that order)
the interpreter imports it, then every other compiled module that recon-check names, in its order; one whose import fails is opened
by dlopen alone, which gives the loader's own reason; where loading them all ends the process, the import alone counts. The shared
objects that are then mapped (/proc/self/maps) are held against the paths that recon-check tells. An error of recon-check is confirmed
when what failed to be imported or opened names its object or a symbol or library in its text; a module that the import of the package
loaded must be there without error. Runs the packages' code.

With --files each file that the import opened, by LD_DEBUG=files, is held against the same paths: as predicted, elsewhere (recon-check
has its name at another path), or not predicted, by what opened it: the interpreter (its own modules), a module of a package, ctypes,
dlopen by a library; which required modules the import did not open, and which optional ones it did. With -v those and the warnings
are named.
"""
import collections, glob, json, os, re, subprocess, sys
import loader_files

MARK = '/recon-the-import-ends-here'
PROBE = r'''
import ctypes, importlib, json, os, sys
package, files = sys.argv[1], sys.argv[2:]
failed, opened = {}, {}
def load(name):
    try: importlib.import_module(name)
    except BaseException as e: failed[name] = '%s: %s' % (type(e).__name__, str(e)[:600])
def maps():
    return sorted({l.split(None, 5)[5].strip() for l in open('/proc/self/maps') if '.so' in l})
for p in package.split('+'): load(p)
first = maps()
imported = dict(failed)
def tell(whole):
    with open(os.environ['PROBE_OUT'], 'w') as f:
        json.dump({'first': first, 'maps': maps(), 'failed': failed, 'opened': opened, 'imported': imported, 'whole': whole,
                   'stdlib': os.path.dirname(os.__file__)}, f)
tell(False)
try: ctypes.CDLL(os.environ['PROBE_MARK'])
except OSError: pass
for f in files:
    for p in sorted(filter(None, map(os.path.abspath, sys.path)), key=len, reverse=True):
        if f.startswith(p + '/'):
            if os.path.realpath(f) not in map(os.path.realpath, maps()): load(f[len(p) + 1:].split('.')[0].replace('/', '.'))
            break
    if os.path.realpath(f) not in map(os.path.realpath, maps()):
        try: ctypes.CDLL(f, mode=os.RTLD_NOW)
        except OSError as e: opened[f] = str(e)
tell(True)
'''


def words(finding):
    """Names in a finding that a loader's message would have: libraries, symbols, versions, the module."""
    found = set(re.findall(r"'([^']+)'", finding['text'])) | {finding['object']}
    return {w for w in found if w} | {os.path.basename(w) for w in found if '/' in w}


class Predicted:
    def __init__(self, check, python, package):
        command = [check, '--host', python, '--libs', '--format', 'jsonl'] + sum([['--package', q] for q in package.split('+')], [])
        lines = [json.loads(l) for l in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
        self.judged = any(l['type'] == 'summary' for l in lines)
        self.libs = [l for l in lines if l['type'] == 'library']
        self.errors = [l for l in lines if l.get('level') == 'error']
        self.warnings = [l for l in lines if l.get('level') == 'warn']
        modules = [l for l in self.libs if l['why'] == 'path' and l['path'] and '.so' in l['path'] and l['soname'].startswith('/')]
        self.files = [l['path'] for l in modules]
        self.required = {os.path.realpath(l['path']) for l in modules if not l.get('optional')}
        self.paths = {os.path.realpath(l['path']) for l in self.libs if l['path']}
        self.names = {os.path.basename(f) for f in self.paths} | {l['soname'] for l in self.libs if l['path'] and '/' not in l['soname']}
        self.own = {os.path.basename(f) for f in self.files} # another module of that name is no library that was found elsewhere


def probe(python, package, modules, files):
    """What PROBE tells of a real import, and with files what the loader opened for it: None, reason where it died."""
    out = '/tmp/host_imports.%d' % os.getpid()
    log = out + '.files'
    env = dict(os.environ, PROBE_OUT=out, PROBE_MARK=MARK)
    if files: env.update(LD_DEBUG='files,libs', LD_DEBUG_OUTPUT=log)
    with open(out + '.err', 'w+') as err:
        p = subprocess.Popen([python, '-c', PROBE, package] + modules, env=env, stdout=subprocess.DEVNULL, stderr=err)
        try: p.wait(timeout=900)
        except subprocess.TimeoutExpired: p.kill(); p.wait()
        err.seek(0)
        why = '%d %s' % (p.returncode, err.read()[-300:])
    got = None
    if os.path.exists(out):
        with open(out) as f: got = json.load(f)
        got['loads'] = loader_files.read(log, p.pid) if files else []
    for f in glob.glob(out + '*'): os.remove(f) # programs that the import started have logs, too
    return got, why


def by_maps(package, p, got, total):
    # what the import of this package brought besides (the standard library, what code opens by ctypes) is not asked for
    names = {os.path.basename(f) for f in p.paths}
    here = {os.path.realpath(m) for m in got['maps'] if os.path.basename(os.path.realpath(m)) in names}
    wrong = sorted(m for m in here - p.paths if os.path.basename(m) not in p.own)
    total['objects'] += len(here)
    total['elsewhere'] += len(wrong)
    if wrong: print(package, 'elsewhere:', wrong)
    return len(here & p.paths)


def by_errors(package, p, got, total):
    said = list(got['failed'].values()) + list(got['opened'].values())
    for e in p.errors:
        confirmed = any(w in s for w in words(e) for s in said)
        total['errors-confirmed' if confirmed else 'false-errors'] += 1
        print(package, 'confirmed:' if confirmed else 'false error:', e['rule'], e['object'], '' if confirmed else e['text'])
    dead = {k: v for k, v in got['opened'].items() if k in p.files and not any(os.path.basename(k) in str(l) or any(w in v for w in words(l))
            for l in p.errors + p.warnings)}
    total['not-predicted'] += len(dead)
    if dead: print(package, 'not predicted:', dead)


def opener(begun, python, stdlib):
    """What made the loader open a file: 'program' (from the start), 'interpreter', 'module', 'ctypes', 'library'."""
    if begun is None: return 'program'
    by, path = os.path.basename(begun.by), begun.path or begun.name
    if by.startswith(('_ctypes.', '_cffi_backend.')): return 'ctypes'
    if os.path.realpath(begun.by) != os.path.realpath(python) and not by.startswith('libpython'): return 'library'
    return 'interpreter' if path.startswith(os.path.realpath(stdlib) + '/lib-dynload/') else 'module'


def by_files(package, p, got, total, python, verbose):
    loads = got['loads']
    end = next((i for i, l in enumerate(loads) if l.name == MARK), len(loads))
    begun = loader_files.chains(loads)
    opened = {l.path for l in loads if l.path}
    kinds = {}
    for i, l in enumerate(loads):
        if l.name == MARK: continue
        if not l.path:
            if l.name in opened or os.path.realpath(l.name) in opened: continue # it is loaded under another name
            kind = 'vain'
        elif l.path in p.paths: kind = 'predicted'
        elif (l.name in p.names or os.path.basename(l.path) in p.names) and os.path.basename(l.path) not in p.own: kind = 'elsewhere'
        else: kind = opener(begun[i], python, got['stdlib'])
        if i > end: kind = {'predicted': 'later', 'elsewhere': 'elsewhere'}.get(kind) # of the other modules only this is asked
        if kind: kinds.setdefault(kind, []).append(l)
    first = {l.path for l in loads[:end]}
    unopened = sorted(p.required - first)
    optional = sorted({os.path.realpath(f) for f in p.files} & first - p.required)
    for k, v in kinds.items(): total[k] += len(v)
    total['required-unopened'] += len(unopened)
    total['optional-opened'] += len(optional)
    if 'program' in kinds: print(package, 'needed by the program and not predicted:', [l.name for l in kinds['program']])
    if 'elsewhere' in kinds: print(package, 'elsewhere:', ['%s by %s' % (l.path, l.by) for l in kinds['elsewhere']])
    for k in ('module', 'ctypes', 'library', 'vain'):
        for l in kinds.get(k, []) if verbose else []: print('  %s %s by %s' % (k, l.path or l.name, l.by))
    for f in unopened if verbose else []: print('  required, not opened', f)
    for f in optional if verbose else []: print('  optional, opened', f)
    return ', '.join('%s %d' % (k, len(v)) for k, v in sorted(kinds.items())) + \
        ', required-unopened %d, optional-opened %d' % (len(unopened), len(optional))


def main():
    args = sys.argv[1:]
    verbose, files = '-v' in args, '--files' in args
    args = [a for a in args if a not in ('-v', '--files')]
    check, python, packages = args[0], args[1], args[2:]
    total = collections.Counter()
    for package in packages:
        p = Predicted(check, python, package)
        if not p.judged:
            print(package, 'was not judged')
            total['not-predicted'] += 1
            continue
        got, why = probe(python, package, p.files, files)
        if not got:
            print(package, 'died:', why)
            total['not-predicted'] += 1
            continue
        total['packages'] += 1
        total['modules'] += len(p.files)
        if files: text = by_files(package, p, got, total, python, verbose)
        else: text = '%d objects mapped as predicted' % by_maps(package, p, got, total)
        by_errors(package, p, got, total)
        first = {os.path.realpath(m) for m in got['first']}
        print('%s: %d modules, %d loaded by the import alone, %s, %d errors, %d warnings%s'
              % (package, len(p.files), len({os.path.realpath(f) for f in p.files} & first), text, len(p.errors), len(p.warnings),
                 '; import failed: %s' % got['imported'] if got['imported'] else '' if got['whole'] else '; all of them end the process: ' + why))
        for l in p.warnings if verbose else []: print('  warn', l['rule'], l['object'], l['text'][:160])
        sys.stdout.flush()
    keys = ('packages', 'modules') + (('predicted', 'later', 'interpreter', 'module', 'ctypes', 'library', 'program', 'vain', 'required-unopened', 'optional-opened')
                                      if files else ('objects',)) + ('elsewhere', 'errors-confirmed', 'false-errors', 'not-predicted')
    print(' '.join('%s %d' % (k, total[k]) for k in keys))
    return total['program'] or total['elsewhere'] or total['false-errors'] or total['not-predicted']


sys.exit(1 if main() else 0)

"""Python packages, as a real import loads them and as recon-check --host predicts.

host_imports.py [-v] RECON_CHECK PYTHON PACKAGE[+PACKAGE...] ...: for each package (or several, imported in that order) the
interpreter imports it, then every other compiled module that recon-check names, in its order; one whose import fails is opened
by dlopen alone, which gives the loader's own reason. The shared objects that are then mapped (/proc/self/maps) are held against
the paths that recon-check tells. An error of recon-check is confirmed when what failed to be imported or opened names its object
or a symbol or library in its text; a module that the import of the package loaded must be there without error. With -v the
warnings are told, too. Runs the packages' code.
"""
import json, os, re, subprocess, sys

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
for f in files:
    for p in sorted(filter(None, map(os.path.abspath, sys.path)), key=len, reverse=True):
        if f.startswith(p + '/'):
            if os.path.realpath(f) not in map(os.path.realpath, maps()): load(f[len(p) + 1:].split('.')[0].replace('/', '.'))
            break
    if os.path.realpath(f) not in map(os.path.realpath, maps()):
        try: ctypes.CDLL(f, mode=os.RTLD_NOW)
        except OSError as e: opened[f] = str(e)
json.dump({'first': first, 'maps': maps(), 'failed': failed, 'opened': opened, 'imported': imported}, open(os.environ['PROBE_OUT'], 'w'))
'''


def words(finding):
    """Names in a finding that a loader's message would have: libraries, symbols, versions, the module."""
    found = set(re.findall(r"'([^']+)'", finding['text'])) | {finding['object']}
    return {w for w in found if w} | {os.path.basename(w) for w in found if '/' in w}


def main():
    args = sys.argv[1:]
    verbose = args[0] == '-v'
    check, python, packages = args[verbose], args[verbose + 1], args[verbose + 2:]
    out = '/tmp/host_imports.%d' % os.getpid()
    ran = modules = libraries = other = false = confirmed = missed = 0
    for package in packages:
        command = [check, '--host', python, '--libs', '--format', 'jsonl'] + sum([['--package', q] for q in package.split('+')], [])
        lines = [json.loads(l) for l in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
        if not any(l['type'] == 'summary' for l in lines):
            print(package, 'was not judged')
            missed += 1
            continue
        libs = [l for l in lines if l['type'] == 'library']
        errors = [l for l in lines if l.get('level') == 'error']
        files = [l['path'] for l in libs if l['why'] == 'path' and l['path'] and '.so' in l['path'] and l['soname'].startswith('/')]
        predicted = {os.path.realpath(l['path']) for l in libs if l['path']}
        if os.path.exists(out): os.remove(out)
        p = subprocess.run([python, '-c', PROBE, package] + files, env=dict(os.environ, PROBE_OUT=out), capture_output=True, text=True,
                           timeout=900)
        if not os.path.exists(out):
            print(package, 'died:', p.returncode, p.stderr[-300:])
            missed += 1
            continue
        got = json.load(open(out))
        # what the import of this package brought besides (the standard library, what code opens by ctypes) is not asked for
        names = {os.path.basename(f) for f in predicted}
        here = {os.path.realpath(m) for m in got['maps'] if os.path.basename(os.path.realpath(m)) in names}
        said = list(got['failed'].values()) + list(got['opened'].values())
        own = {os.path.basename(f) for f in files} # another module of that name is no library that was found elsewhere
        wrong = sorted(m for m in here - predicted if os.path.basename(m) not in own)
        ran, modules, libraries, other = ran + 1, modules + len(files), libraries + len(here), other + len(wrong)
        if wrong: print(package, 'elsewhere:', wrong)
        for e in errors:
            if any(w in s for w in words(e) for s in said):
                confirmed += 1
                print(package, 'confirmed:', e['rule'], e['object'])
            else:
                false += 1
                print(package, 'false error:', e['rule'], e['object'], e['text'])
        dead = {k: v for k, v in got['opened'].items() if k in files and not any(os.path.basename(k) in str(l) or any(w in v for w in words(l))
                for l in lines if l.get('level') in ('error', 'warn'))}
        missed += len(dead)
        if dead: print(package, 'not predicted:', dead)
        first = {os.path.realpath(m) for m in got['first']}
        print('%s: %d modules, %d loaded by the import alone, %d objects mapped as predicted, %d errors, %d warnings%s'
              % (package, len(files), len({os.path.realpath(f) for f in files} & first), len(here & predicted), len(errors),
                 sum(l.get('level') == 'warn' for l in lines), '; import failed: %s' % got['imported'] if got['imported'] else ''))
        for l in lines:
            if verbose and l.get('level') == 'warn': print('  warn', l['rule'], l['object'], l['text'][:160])
        sys.stdout.flush()
    print('packages %d modules %d objects %d elsewhere %d errors-confirmed %d false-errors %d not-predicted %d'
          % (ran, modules, libraries, other, confirmed, false, missed))
    return false or other or missed


sys.exit(1 if main() else 0)

"""Python packages, as a real import loads them and as recon-check --host predicts.

host_imports.py RECON_CHECK PYTHON PACKAGE[+PACKAGE...] ...: for each package (or several, imported in that order) the interpreter imports it and then every compiled module that
recon-check names, in its order; the shared objects that are mapped afterwards (/proc/self/maps) are held against the paths that
recon-check tells, and the errors of recon-check against failures to import. Runs the packages' code.
"""
import json, os, subprocess, sys

PROBE = r'''
import importlib, json, os, sys
package, files = sys.argv[1], sys.argv[2:]
failed = {}
def load(name):
    try: importlib.import_module(name)
    except BaseException as e: failed[name] = '%s: %s' % (type(e).__name__, str(e)[:200])
for p in package.split('+'): load(p)
for f in files:
    for p in sorted(filter(None, map(os.path.abspath, sys.path)), key=len, reverse=True):
        if f.startswith(p + '/'):
            load(f[len(p) + 1:].split('.')[0].replace('/', '.'))
            break
maps = sorted({l.split(None, 5)[5].strip() for l in open('/proc/self/maps') if '.so' in l})
json.dump({'maps': maps, 'failed': failed}, open(os.environ['PROBE_OUT'], 'w'))
'''


def main():
    check, python, packages = sys.argv[1], sys.argv[2], sys.argv[3:]
    out = '/tmp/host_imports.%d' % os.getpid()
    ran = modules = libraries = other = false = confirmed = 0
    for package in packages:
        lines = subprocess.run([check, '--host', python, '--libs', '--format', 'jsonl'] + sum([['--package', q] for q in package.split('+')], []), capture_output=True,
                               text=True).stdout.splitlines()
        lines = [json.loads(l) for l in lines]
        libs = [l for l in lines if l['type'] == 'library']
        errors = [l for l in lines if l.get('level') == 'error']
        files = [l['path'] for l in libs if l['why'] == 'path' and l['path'] and '.so' in l['path'] and l['soname'].startswith('/')]
        predicted = {os.path.realpath(l['path']) for l in libs if l['path']}
        if os.path.exists(out): os.remove(out)
        p = subprocess.run([python, '-c', PROBE, package] + files, env=dict(os.environ, PROBE_OUT=out), capture_output=True, text=True,
                           timeout=600)
        if not os.path.exists(out):
            print(package, 'died:', p.returncode, p.stderr[-300:])
            continue
        got = json.load(open(out))
        # what the import of this package brought besides (other packages, the standard library) is not asked for
        names = {os.path.basename(f) for f in predicted}
        here = {os.path.realpath(m) for m in got['maps'] if os.path.basename(os.path.realpath(m)) in names}
        failed = {k: v for k, v in got['failed'].items() if '.so' in v or 'undefined symbol' in v or 'version `' in v}
        wrong = sorted(m for m in here - predicted if '.cpython-' not in m)
        ran, modules, libraries, other = ran + 1, modules + len(files), libraries + len(here), other + len(wrong)
        if wrong: print(package, 'elsewhere:', wrong)
        for e in errors:
            if failed: confirmed += 1
            else:
                false += 1
                print(package, 'false error:', e['rule'], e['text'])
        if failed and not errors: print(package, 'not predicted:', failed)
        print('%s: %d modules, %d objects mapped as predicted, %d errors, failed imports %s'
              % (package, len(files), len(here & predicted), len(errors), failed or 'none'))
    print('packages %d modules %d objects %d elsewhere %d errors-confirmed %d false-errors %d'
          % (ran, modules, libraries, other, confirmed, false))


main()

"""Installed programs, as ld.so resolves them and as lib/elf does, under three environments; and no error of recon-check.

loader_programs.py DUMP RECON_CHECK [FILE ...]: without files every ELF program of /usr/bin, /usr/sbin and git's and
glibc's helper folders; of the files given, libraries, too, as `ldd -r` takes them. For each file and environment: the ordered list of resolved paths (LD_TRACE_LOADED_OBJECTS), the set of
undefined symbols (ldd -r), and the errors of recon-check, which are held against what ld.so says. Runs no judged program.
"""
import glob, json, os, re, subprocess, sys

ENVS = [
    {},
    {'LD_LIBRARY_PATH': '/usr/local/cuda/lib64:/nonexistent;/usr/lib:', 'LD_BIND_NOW': '1'},
    {'LD_PRELOAD': 'libz.so.1:/nonexistent/libx.so', 'LD_LIBRARY_PATH': '$ORIGIN/../lib:/usr/lib/x86_64-linux-gnu'},
]
BASE = {'PATH': '/usr/bin:/bin', 'HOME': '/root'}


LOADER = '/lib64/ld-linux-x86-64.so.2'


def is_library(path): return '.so' in os.path.basename(path) and os.path.realpath(path) != os.path.realpath(LOADER)


def is_program(path):
    try:
        with open(path, 'rb') as f: h = f.read(20)
    except OSError: return False
    return h[:5] == b'\x7fELF\x02' and h[18:20] == b'\x3e\0' and (is_library(path) or os.access(path, os.X_OK))


def run(cmd, env): return subprocess.run(cmd, env=dict(BASE, **env), capture_output=True, text=True, errors='replace',
                                         stdin=subprocess.DEVNULL, cwd='/', timeout=120)


def by_loader(path, env):
    p = run([LOADER, path] if is_library(path) else [path], dict(env, LD_TRACE_LOADED_OBJECTS='1', LD_WARN='yes', LD_BIND_NOW='1'))
    libs, undefined, fatal, missing = [], set(), None, set()
    for line in (p.stdout + p.stderr).splitlines():
        m = re.search(r'undefined symbol: (\S+?)(?:, version (\S+))?\t\((.*)\)$', line)
        if m: undefined.add((m[1], m[2] or '-', m[3]))
        if 'error while loading' in line: fatal = line
        if 'version `' in line and 'not found' in line: fatal = line
    for line in p.stdout.splitlines():
        m = re.match(r'\t(\S.*?)(?: => (.*?))?(?: \(0x[0-9a-f]+\))?$', line)
        if not m or m[1].startswith('linux-vdso') or m[1] == 'statically linked' or 'undefined' in line: continue
        if m[2] == 'not found' and m[1] in missing: continue # ld.so tells it once for each object that needs it
        if m[2] == 'not found': missing.add(m[1])
        libs.append(None if m[2] == 'not found' else m[2] or m[1])
    return libs, undefined, fatal


def by_elf(dump, path, env):
    p = run([dump, '-s', path], env)
    libs, undefined = [], set()
    for i, line in enumerate(p.stdout.splitlines()):
        f = line.split('\t')
        if line.startswith('undefined: '): undefined.add((f[0][11:], f[1], f[2]))
        elif i and not ('preload' in f[3:] and f[1] == '-'): libs.append(None if f[1] == '-' else f[1])
    return libs, undefined


def known(undefined, libs):
    """Where a library is not found, ld.so does not count its versions' indices (glibc elf/dl-version.c, l_faked): a reference with a
    higher one is then told without a version, or with what lies behind the table."""
    return {(s[0], s[2]) for s in undefined} if None in libs else undefined


def errors(check, path, env):
    p = run([check, '--format', 'jsonl', path], env)
    return [f for f in map(json.loads, p.stdout.splitlines()) if f.get('level') == 'error']


def main():
    dump, check, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not files:
        for d in ('/usr/bin', '/usr/sbin', '/usr/lib/git-core', '/usr/libexec', '/usr/lib/gcc/*/*'): files += glob.glob(d + '/*')
    files = sorted({os.path.realpath(f) for f in files if os.path.isfile(f) and is_program(f)})
    n = objects = symbols = differ = missing = false = true = 0
    for path in files:
        for i, env in enumerate(ENVS):
            want, undefined, fatal = by_loader(path, env)
            if not want: continue # static
            got, mine = by_elf(dump, path, env)
            n += 1
            objects += len(want)
            symbols += len(undefined)
            missing += want.count(None)
            key = lambda l: ([x for x in l if x], l.count(None))
            if key(want) != key(got):
                differ += 1
                print('%s, environment %d: differs' % (path, i), [x for x in want if x not in got], [x for x in got if x not in want])
            elif known(undefined, want) != known(mine, want):
                differ += 1
                print('%s, environment %d: symbols differ' % (path, i), sorted(undefined ^ mine)[:6])
            for f in errors(check, path, env):
                if None in want or undefined or fatal: true += 1
                else:
                    false += 1
                    print('%s, environment %d: false error' % (path, i), f['rule'], f['text'])
    print('files %d runs %d objects %d missing %d undefined %d differ %d errors-confirmed %d false-errors %d'
          % (len(files), n, objects, missing, symbols, differ, true, false))


main()

"""Random graphs of shared objects, as ld.so resolves them and as lib/elf does.

loader_graphs.py DUMP DIR FIRST COUNT [root]: seeds FIRST.. ; prints one line for each graph that differs, then
"graphs N objects M corrupt K missing L cached C". Objects are written byte by byte: no compiler is needed and none of them
runs. With root every graph is a tree of its own with default directories, /etc/ld.so.preload and a cache that ldconfig -r made
(and that is stale now and then); ld.so is run in it by chroot, lib/elf is given the folder. It wants to be in a mount namespace
where chroot and mount are allowed: unshare -rm.
"""
import os, random, shutil, struct, subprocess, sys

DT = dict(NEEDED=1, HASH=4, STRTAB=5, SYMTAB=6, STRSZ=10, SYMENT=11, SONAME=14, RPATH=15, RUNPATH=29,
          FLAGS_1=0x6ffffffb, AUXILIARY=0x7ffffffd, FILTER=0x7fffffff)
DF_1_NODEFLIB, DF_1_PIE = 0x800, 0x08000000


def elf(path, soname=None, needed=(), filters=(), rpath=None, runpath=None, interp=None, nodeflib=False, machine=62, cls=2, cut=None):
    """Writes a minimal ELF64 shared object, or with interp a position-independent program.
    filters: (how many of needed stand before it, 'FILTER' or 'AUXILIARY', name)"""
    strtab, at = bytearray(b'\0'), {}

    def text(s):
        if s not in at:
            at[s] = len(strtab)
            strtab.extend(s.encode() + b'\0')
        return at[s]

    dyn = [(DT['NEEDED'], text(n)) for n in needed]
    for before, tag, name in sorted(filters, reverse=True): dyn.insert(before, (DT[tag], text(name)))
    if soname: dyn.append((DT['SONAME'], text(soname)))
    if rpath is not None: dyn.append((DT['RPATH'], text(rpath)))
    if runpath is not None: dyn.append((DT['RUNPATH'], text(runpath)))
    flags = (DF_1_NODEFLIB if nodeflib else 0) | (DF_1_PIE if interp else 0)
    if flags: dyn.append((DT['FLAGS_1'], flags))
    n_ph = 4 if interp else 2
    off = 64 + 56 * n_ph
    interp_off = off
    if interp: off += len(interp) + 1
    off = (off + 7) & ~7
    sym_off = off; off += 24
    hash_off = off; off += 16
    str_off = off; off = (off + len(strtab) + 7) & ~7
    dyn += [(DT['HASH'], hash_off), (DT['STRTAB'], str_off), (DT['SYMTAB'], sym_off), (DT['STRSZ'], len(strtab)),
            (DT['SYMENT'], 24), (0, 0)]
    dyn_off = off
    size = off + 16 * len(dyn)
    ph = []
    if interp:
        ph.append((6, 4, 64, 56 * n_ph, 8))
        ph.append((3, 4, interp_off, len(interp) + 1, 1))
    ph.append((1, 6, 0, size, 0x1000))
    ph.append((2, 6, dyn_off, 16 * len(dyn), 8))
    b = bytearray(size)
    b[0:16] = b'\x7fELF' + bytes([cls, 1, 1, 0]) + bytes(8)
    struct.pack_into('<HHIQQQIHHHHHH', b, 16, 3, machine, 1, 0x1000 if interp else 0, 64, 0, 0, 64, 56, n_ph, 64, 0, 0)
    for i, (t, fl, o, n, al) in enumerate(ph):
        struct.pack_into('<IIQQQQQQ', b, 64 + 56 * i, t, fl, o, o, o, n, n, al)
    if interp: b[interp_off:interp_off + len(interp)] = interp.encode()
    struct.pack_into('<IIII', b, hash_off, 1, 1, 0, 0)
    b[str_off:str_off + len(strtab)] = strtab
    for i, (t, v) in enumerate(dyn):
        struct.pack_into('<QQ', b, dyn_off + 16 * i, t, v)
    with open(path, 'wb') as f:
        f.write(b if cut is None else b[:cut])
    os.chmod(path, 0o755)


INTERP = '/lib64/ld-linux-x86-64.so.2'
DIRS = ['a', 'b', 'c', 'd/e', 'd/lib/x86_64-linux-gnu']
SUBS = ['glibc-hwcaps/x86-64-v2', 'glibc-hwcaps/x86-64-v3', 'glibc-hwcaps/x86-64-v4', 'tls', 'tls/x86_64', 'x86_64',
        'tls/x86_64/x86_64', 'x86_64/x86_64', 'glibc-hwcaps/power9', 'haswell', 'avx512_1', 'tls/haswell/avx512_1/x86_64',
        'haswell/avx512_1', 'sse2', 'xeon_phi']
NAMES = ['libg%d.so.%d' % (i, i % 3) for i in range(9)]
SYSTEM = ['lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu', 'lib', 'usr/lib', 'opt/v1.10', 'opt/v1.9']


class Graph:
    """top: the folder that is written to; root: what the graph's own texts call it; system: a whole tree"""
    def __init__(self, top, root, seed, system=False):
        self.top, self.root, self.r = top, root, random.Random(seed)
        self.system = system
        self.dirs = DIRS + (SYSTEM if system else [])
        self.corruption = self.r.random() < 0.3
        self.files, self.optional, self.has_filters = [], set(), False
        for d in self.dirs: os.makedirs(os.path.join(top, d), exist_ok=True)

    def path_element(self, origin=True):
        r = self.r
        d = r.choice(self.dirs)
        forms = ['%s/%s' % (self.root, d), '%s/%s/' % (self.root, d), '%s/none/%s' % (self.root, d), d, '',
                 '%s/./%s//' % (self.root, d), '/' + 'n' * 300]
        weights = [10, 1, 1, 1, 1, 1, 0.2]
        if origin:
            forms += ['$ORIGIN/../' + d, '${ORIGIN}/' + d, '$ORIGIN', '$ORIGIN/../d/$LIB', '$ORIGIN/../${PLATFORM}',
                      '$ORIGINS/x', self.root + '/$PLATFORM', '$ORIGIN/../../' + d]
            weights += [4, 2, 3, 1, 1, 0.3, 1, 2]
        return r.choices(forms, weights)[0]

    def path(self, seps=':', origin=True, most=6):
        r = self.r
        out = ''
        for i in range(r.randint(1, most)):
            out += (r.choice(seps) if i else '') + self.path_element(origin)
        return out

    def needed(self):
        r = self.r
        out = []
        for _ in range(r.choices([0, 1, 2, 3], [2, 4, 3, 2])[0]):
            n = r.choice(NAMES)
            x = r.random()
            if x < 0.04: n = '%s/%s/%s' % (self.root, r.choice(self.dirs), n)
            elif x < 0.06: n = '$ORIGIN/' + n
            elif x < 0.08: n = './' + n
            elif x < 0.10: n = 'ld-linux-x86-64.so.2'
            elif x < 0.12: n = 'libz.so.1'
            elif x < 0.13: n = 'libc.so.6'
            out.append(n)
        return out

    def filter(self, most):
        r = self.r
        tag = r.choice(['FILTER', 'AUXILIARY'])
        name = 'libf%d.so' % r.randrange(4) # these have no filters: a circle of them is a loop without end for ld.so
        self.has_filters = True
        if tag == 'AUXILIARY': self.optional.add(name)
        return r.randint(0, most), tag, name

    def attributes(self, program=False):
        r = self.r
        a = dict(needed=self.needed())
        x = r.random()
        if x < 0.25: a['rpath'] = self.path()
        elif x < 0.5: a['runpath'] = self.path()
        elif x < 0.56: a['rpath'], a['runpath'] = self.path(), self.path()
        elif x < 0.58: a['runpath'] = ''
        if r.random() < 0.05: a['nodeflib'] = True
        if r.random() < 0.08 and not program: a['filters'] = [self.filter(len(a['needed'])) for _ in range(r.randint(1, 2))]
        return a

    def spoil(self, path):
        r = self.r
        kind = r.choice(['text', 'empty', 'short', 'dir', 'garbage', 'exec'])
        if kind == 'text': open(path, 'w').write('libg0.so.0')
        elif kind == 'empty': open(path, 'w').close()
        elif kind == 'short': elf(path, cut=r.choice([10, 40, 63]))
        elif kind == 'garbage': open(path, 'wb').write(bytes(r.randrange(1, 256) for _ in range(500)))
        elif kind == 'exec':
            elf(path)
            with open(path, 'r+b') as f:
                f.seek(16)
                f.write(struct.pack('<H', 1))
        else: os.mkdir(path)

    def place(self, d, name):
        r = self.r
        folder = os.path.join(self.top, d)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        if os.path.lexists(path): return
        x = r.random()
        plain = name.startswith('libf')
        if x < 0.06: elf(path, cls=1, **self.attributes(plain))
        elif x < 0.10: elf(path, machine=183, **self.attributes(plain))
        elif x < 0.13: os.symlink('/nowhere/' + name, path)
        elif x < 0.14: os.symlink(name, path)
        elif x < 0.22 and self.files and not plain: os.symlink(self.root + r.choice(self.files)[len(self.top):], path)
        elif x < 0.25 and self.files and not plain: os.link(r.choice(self.files), path)
        elif x < 0.40 and self.corruption: self.spoil(path)
        else:
            y = r.random()
            soname = name if y < 0.6 else None if y < 0.75 else r.choice(NAMES)
            elf(path, soname=name if plain else soname, **self.attributes(plain))
            if not plain: self.files.append(path)

    def build(self):
        r = self.r
        for name in NAMES + ['libf%d.so' % i for i in range(3)]:
            for _ in range(r.choices([1, 2, 3, 4, 0], [2, 3, 3, 3, 0.3])[0]):
                d = r.choice(self.dirs)
                if r.random() < 0.2: d = os.path.join(d, r.choice(SUBS))
                self.place(d, name)
        if self.system: self.make_system()
        a = self.attributes(True)
        a['needed'] = a['needed'] + self.needed() or [NAMES[0]]
        self.program = '%s/%s/prog' % (self.root, r.choice(['a', 'bin']))
        os.makedirs(os.path.dirname(self.outside(self.program)), exist_ok=True)
        elf(self.outside(self.program), interp=INTERP, **a)
        if r.random() < 0.3:
            link = self.root + '/c/prog-link'
            os.symlink(self.program, self.outside(link))
            self.program = link
        self.env = {}
        if r.random() < 0.6: self.env['LD_LIBRARY_PATH'] = self.path(':;' if r.random() < 0.5 else ':', r.random() < 0.3)
        elif r.random() < 0.2: self.env['LD_LIBRARY_PATH'] = ''
        if r.random() < 0.3:
            items = []
            for _ in range(r.randint(1, 3)):
                items.append(r.choice([r.choice(NAMES), '%s/%s/%s' % (self.root, r.choice(self.dirs), r.choice(NAMES)),
                                       '', 'libabsent.so', '$ORIGIN/' + r.choice(NAMES), 'ld-linux-x86-64.so.2']))
            self.env['LD_PRELOAD'] = r.choice([':', ' ']).join(items)
        self.cwd = os.path.join(self.root or '/', r.choice(['', 'a', 'b', 'c', 'd/e']))

    def outside(self, path): return self.top + path[len(self.root):]

    def make_system(self):
        """the loader, ld.so.conf, ld.so.preload, the cache, and what has changed since it was made"""
        r = self.r
        for d in ('lib64', 'etc'): os.makedirs(os.path.join(self.top, d), exist_ok=True)
        shutil.copy2(INTERP, self.top + INTERP)
        conf = r.sample(self.dirs, r.randint(0, 6))
        if r.random() < 0.2: conf.append(r.choice(self.dirs) + '/' + r.choice(SUBS))
        lines = ['/' + d for d in conf]
        if len(lines) > 2 and r.random() < 0.4:
            os.makedirs(self.top + '/etc/ld.so.conf.d')
            open(self.top + '/etc/ld.so.conf.d/some.conf', 'w').write('\n'.join(lines[2:]) + ' # a comment\n')
            lines[2:] = ['include ld.so.conf.d/*.conf']
        open(self.top + '/etc/ld.so.conf', 'w').write('\n'.join(lines) + '\n')
        if r.random() < 0.2:
            items = [r.choice(NAMES + ['/none/libx.so', '# libg1.so.1']) for _ in range(r.randint(1, 3))]
            open(self.top + '/etc/ld.so.preload', 'w').write(r.choice(['\n', ' ', '\t', ':']).join(items) + r.choice(['\n', '']))
        if r.random() < 0.05: return
        form = r.choices(['new', 'compat', 'old'], [8, 1, 1])[0]
        subprocess.run(['/sbin/ldconfig', '-r', self.top, '-i', '-c', form] + (['-X'] if r.random() < 0.5 else []),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        for path in r.sample(self.files, min(len(self.files), r.choices([0, 1, 3], [6, 2, 2])[0])):
            if not os.path.isfile(path): continue
            os.unlink(path)
            self.files.remove(path)
            y = r.random()
            if y < 0.3: elf(path, soname=r.choice(NAMES), **self.attributes())
            elif y < 0.5 and self.corruption: self.spoil(path)
        if r.random() < 0.1: self.place(r.choice(SYSTEM), r.choice(NAMES))
        if r.random() < 0.03:
            cache = self.top + '/etc/ld.so.cache'
            if os.path.exists(cache): os.truncate(cache, r.randrange(os.path.getsize(cache)))


def whole(path, cwd):
    return path if path.startswith('/') else os.path.join(cwd, path)


def by_loader(g):
    """([(name, path or None)], fatal message or None)"""
    def enter():
        os.chroot(g.top)
        os.chdir(g.cwd)
    p = subprocess.run([g.program], env=dict(g.env, LD_TRACE_LOADED_OBJECTS='1'), cwd=None if g.system else g.cwd,
                       preexec_fn=enter if g.system else None, capture_output=True, text=True, timeout=60)
    out, seen = [], set()
    for line in p.stdout.splitlines():
        line = line.strip()
        if line.startswith('linux-vdso') or not line or line == 'statically linked': continue
        name, arrow, rest = line.partition(' => ')
        if not arrow: name = rest = line
        rest = rest.rsplit(' (0x', 1)[0]
        name = name.rsplit(' (0x', 1)[0]
        item = (name, None if rest == 'not found' else whole(rest, g.cwd))
        if item[1] is None and name in seen: continue
        seen.add(name)
        out.append(item)
    fatal = [l for l in p.stderr.splitlines() if 'error while loading shared libraries' in l]
    return out, fatal[0] if fatal else None


def by_elf(dump, g):
    cmd = [dump, '-E'] + (['-r', g.top, '-C', g.cwd] if g.system else [])
    for k, v in g.env.items(): cmd += ['-e', '%s=%s' % (k, v)]
    p = subprocess.run(cmd + [g.program], cwd=None if g.system else g.cwd, capture_output=True, text=True)
    if p.returncode: return None, ['failed: ' + p.stderr], None
    out, corrupt = [], []
    for line in p.stdout.splitlines()[1:]:
        f = line.split('\t')
        bad = [x for x in f[3:] if x.startswith('corrupt: ')]
        preload = 'preload' in f[3:]
        if preload and (bad or f[1] == '-'): continue
        if bad: corrupt.append((f[1], bad[0]))
        if bad: out.append((f[0], 'CORRUPT'))
        else: out.append((f[0], None if f[1] == '-' else f[1]))
    return out, corrupt, p.stdout


def alike(a, b):
    # the loader tells itself by its path, whatever name it was asked by
    return a[1] == b[1] and (a[0] == b[0] or a[1] == INTERP)


def split(items):
    return [x for x in items if x[1]], [x for x in items if not x[1]]


def optional_missing(items, g): return {x[0] for x in items if not x[1] and x[0] in g.optional}


def without_optional(items, g):
    """ld.so's list tells of an auxiliary library that is nowhere, of which a program that runs hears nothing"""
    return [x for x in items if x[1] or x[0] not in g.optional]


def main():
    dump, base, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    system = sys.argv[5:] == ['root']
    total = dict(objects=0, corrupt=0, missing=0, cached=0)
    for seed in range(first, first + count):
        top = os.path.join(base, 'g%d' % seed)
        os.makedirs(top)
        if system: # the loader tells $ORIGIN of the program from /proc
            os.mkdir(top + '/proc')
            subprocess.run(['mount', '--rbind', '/proc', top + '/proc'], check=True)
        g = Graph(top, '' if system else top, seed, system)
        g.build()
        want, fatal = by_loader(g)
        got, corrupt, text = by_elf(dump, g)
        ok = got is not None
        if ok and fatal:
            total['corrupt'] += 1
            path = fatal.split('error while loading shared libraries: ', 1)[1]
            # filters stand before what was loaded earlier
            ok = any(path.startswith(c[0] + ':') or whole(path, g.cwd).startswith(c[0] + ':')
                     for c in corrupt[:None if g.has_filters else 1])
        elif ok:
            # where the loader lists itself among what is missing is an artefact of its listing
            ok = optional_missing(got, g) <= optional_missing(want, g)
            want, got = without_optional(want, g), without_optional(got, g)
            ok = ok and not corrupt and all(len(a) == len(b) and all(map(alike, a, b)) for a, b in zip(split(want), split(got)))
            total['objects'] += len(want)
            total['missing'] += sum(1 for x in want if x[1] is None)
            total['cached'] += text.count('\tcache')
        if not ok:
            print('seed %d differs: program %s cwd %s env %r' % (seed, g.program, g.cwd, g.env))
            print('  ld.so: %s %s' % (fatal or '', want))
            print('  elf:   %s %s' % (corrupt, got))
        if system: subprocess.run(['umount', '-l', top + '/proc'], check=True)
        if ok: shutil.rmtree(top)
    print('graphs %d objects %d corrupt %d missing %d cached %d' % (count, total['objects'], total['corrupt'], total['missing'],
                                                                    total['cached']))


main()

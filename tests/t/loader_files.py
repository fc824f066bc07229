"""What LD_DEBUG=files,libs says that one process opened: read(prefix, pid) gives a list of Load in the loader's order.

A line names a file as it was asked for, `generating link map` says that it was mapped. A name without a slash was found at the last
path that the search tried. `by` is what needed it or called dlopen, by the name under which that is loaded.
"""
import os, re, sys

ASKED = re.compile(r'file=(.*) \[\d+\];  (needed|dynamically loaded) by (.*) \[\d+\]$')
MAPPED = re.compile(r'file=(.*) \[\d+\];  generating link map$')


class Load:
    def __init__(self, name, by, dynamic): self.name, self.by, self.dynamic, self.path, self.tried = name, by, dynamic, None, False


def read(prefix, pid):
    """Every file that was asked for; .path is None where nothing was mapped (it is not there, or it is loaded by another name)."""
    loads, tried = [], None
    with open('%s.%d' % (prefix, pid), errors='replace') as f:
        for line in f:
            head, _, text = line.rstrip('\n').partition(':\t')
            if not head.strip().isdigit() or int(head) != pid: continue # a child that was forked writes here, too
            if text.startswith('  trying file='): tried = text[14:]
            m = ASKED.match(text)
            if m:
                loads.append(Load(m[1], m[3], m[2] != 'needed'))
                tried = None
            m = MAPPED.match(text)
            if m and loads:
                loads[-1].path = os.path.realpath(m[1] if '/' in m[1] else tried or '')
                loads[-1].loaded_as = m[1] if '/' in m[1] else tried
    return loads


def chains(loads):
    """For each load the one that began it: itself where it was opened by dlopen, else what pulled it in; None: the program's own."""
    begun, first = {}, {}
    for l in loads:
        begun[id(l)] = l if l.dynamic else first.get(l.by)
        if l.path: first.setdefault(l.loaded_as, begun[id(l)])
    return [begun[id(l)] for l in loads]

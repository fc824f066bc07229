"""Others' programs on one input, the least of N runs: peers.py CASE REPEAT [INPUT...]; prints "ms X cpu Y name value ...".

mc-vtk, mc-skimage: sphere 256^3. fuse-open3d FOLDER COLOR. loop-open3d, load-open3d MESH. sign-vtk MESH POINTS.
volume FOLDER VOLUME.npz BAND: a volume in blocks of compat open3d, fused from the first hundred frames, against Open3D's own (what
both hold: same weights, same values). points MESH N FILE: N points of float32 in the mesh's box, a fixed seed. rms MESH SIMPLE...: distance of the vertices and of
200,000 points of the first on each other mesh, as a share of the diagonal of its box, and how many edges of the border stay."""
import collections, os, sys, time
import numpy as np


def least(repeat, run, make=lambda: ()):
    best, cpu, out = 1e30, 1e30, None
    for _ in range(repeat + 1):
        args = make()
        t0, c0 = time.perf_counter(), time.process_time()
        out = run(*args)
        cpu = min(cpu, (time.process_time() - c0) * 1e3)
        best = min(best, (time.perf_counter() - t0) * 1e3)
    return (best, cpu), out


def say(ms, **words):
    print('ms %.4f cpu %.4f' % ms, *('%s %s' % w for w in words.items()))


def sphere():
    x = np.linspace(-1, 1, 256, dtype=np.float64)
    return (np.sqrt(x[:, None, None] ** 2 + x[None, :, None] ** 2 + x[None, None, :] ** 2) - 0.7).astype(np.float32)


def mc_vtk(repeat):
    from vtkmodules.util import numpy_support as ns
    from vtkmodules.vtkCommonDataModel import vtkImageData
    from vtkmodules.vtkFiltersCore import vtkFlyingEdges3D
    from vtkmodules.vtkCommonCore import vtkSMPTools
    s = sphere()
    image = vtkImageData()
    image.SetDimensions(256, 256, 256)
    image.SetSpacing(2 / 255, 2 / 255, 2 / 255)
    image.GetPointData().SetScalars(ns.numpy_to_vtk(s.ravel(), deep=True))
    f = vtkFlyingEdges3D()
    f.SetInputData(image)
    f.ComputeNormalsOff()
    f.ComputeGradientsOff()
    f.ComputeScalarsOff()
    f.SetValue(0, 0.0)
    if 'THREADS' in os.environ:
        vtkSMPTools.Initialize(int(os.environ['THREADS']))

    def run():
        f.Modified()
        f.Update()
        return f.GetOutput()
    ms, m = least(repeat, run)
    say(ms, vertices=m.GetNumberOfPoints(), faces=m.GetNumberOfPolys(), backend=vtkSMPTools.GetBackend(),
        threads=vtkSMPTools.GetEstimatedNumberOfThreads())


def mc_skimage(repeat):
    from skimage.measure import marching_cubes
    s = sphere()
    ms, m = least(repeat, lambda: marching_cubes(s, 0.0, method='lewiner'))
    say(ms, vertices=len(m[0]), faces=len(m[1]), threads=1)


def rgbd(folder, real=True):
    """Frames decoded: depth (mm, beyond 5 m none), colour, world to camera; the pose's rotation is turned over, not inverted"""
    import open3d as o3d
    c, frames = o3d.core, []
    for name in sorted(n for n in os.listdir(folder) if n.endswith('.depth.png'))[:100]:
        stem = folder + '/' + name[:-len('.depth.png')]
        d = np.asarray(o3d.io.read_image(stem + '.depth.png')).copy()
        d[(d == 65535) | (d > 5000)] = 0
        d = d.astype(np.float32) if real else d
        rgb = o3d.t.geometry.Image(c.Tensor(np.asarray(o3d.io.read_image(stem + '.color.jpg')).copy()))
        pose, back = np.loadtxt(stem + '.pose.txt'), np.eye(4)
        back[:3, :3] = pose[:3, :3].T
        back[:3, 3] = -back[:3, :3] @ pose[:3, 3]
        frames.append((o3d.t.geometry.Image(c.Tensor(d)), rgb, c.Tensor(back)))
    return c.Tensor(np.loadtxt(folder + '/camera-intrinsics.txt')), frames


def fuse_open3d(repeat, folder, color):
    import open3d as o3d
    c, color = o3d.core, color == 'color'
    cpu = c.Device('CPU:0')
    k, frames = rgbd(folder, not color)
    if color:
        names, types, shapes = ('tsdf', 'weight', 'color'), (c.float32, c.uint16, c.uint16), ((1), (1), (3))
    else:
        names, types, shapes = ('tsdf', 'weight'), (c.float32, c.float32), ((1), (1))

    def run():
        g = o3d.t.geometry.VoxelBlockGrid(names, types, shapes, 0.02, 16, 5000, cpu)
        for depth, rgb, pose in frames:
            b = g.compute_unique_block_coordinates(depth, k, pose, 1000.0, 5.0, 4.0)
            if color:
                g.integrate(b, depth, rgb, k, k, pose, 1000.0, 5.0, 4.0)
            else:
                g.integrate(b, depth, k, pose, 1000.0, 5.0, 4.0)
        return g
    ms, g = least(repeat, run)
    used = g.hashmap().active_buf_indices().numpy()
    say(ms, frames=len(frames), blocks=len(used), updates=int(g.attribute('weight').numpy()[used].astype(np.float64).sum()))


def volume(folder, npz, band):
    import open3d as o3d
    c, v, band = o3d.core, np.load(npz), float(band)
    k, frames = rgbd(folder)
    g = o3d.t.geometry.VoxelBlockGrid(('tsdf', 'weight'), (c.float32, c.float32), ((1), (1)), float(v['voxel']), 16, 20000, c.Device('CPU:0'))
    every = np.unique(np.concatenate([g.compute_unique_block_coordinates(d, k, p, 1000.0, 5.0, band).numpy() for d, _, p in frames]), axis=0)
    for d, _, p in frames:  # every block takes every frame, as there
        g.integrate(c.Tensor(every.astype(np.int32)), d, k, p, 1000.0, 5.0, band)
    low, keys = np.rint(v['origin'] / float(v['voxel'])).astype(int), g.hashmap().key_tensor().numpy()
    whole = -(-v['dim'].astype(int) // 16) * 16
    value, weight, held = np.ones(whole, np.float32), np.zeros(whole, np.float32), np.zeros(whole, bool)
    for b, t, w in zip(v['blocks'].astype(int), v['tsdf'], v['weight']):
        at = tuple(slice(16 * i, 16 * i + 16) for i in b)
        value[at], weight[at], held[at] = t, w, True
    theirs = np.ones(whole, np.float32), np.zeros(whole, np.float32)
    for b in g.hashmap().active_buf_indices().numpy():
        first = keys[b] * 16 - low
        for a, name in zip(theirs, ('tsdf', 'weight')):
            box = [(max(f, 0), min(f + 16, n)) for f, n in zip(first, whole)]
            if all(l < h for l, h in box):
                a[tuple(slice(l, h) for l, h in box)] = g.attribute(name)[b].numpy().reshape(16, 16, 16).transpose(2, 1, 0)[
                    tuple(slice(l - f, h - f) for (l, h), f in zip(box, first))]
    inside = np.zeros(whole, bool)
    inside[tuple(slice(n) for n in v['dim'])] = True
    both = held & inside & (theirs[1] > 0)
    same = both & (theirs[1] == weight)
    off = np.abs(theirs[0] - value)[same]
    print('both %d same-weight %.6f of-these-within-1e-4 %.6f mean-off %.2g near-a-surface-there-alone %d' % (
        both.sum(), same.sum() / both.sum(), (off < 1e-4).mean(), off.mean(), (inside & ~held & (theirs[1] > 0) & (theirs[0] < 0.9999)).sum()))


def loop_open3d(repeat, mesh):
    import open3d as o3d
    m = o3d.io.read_triangle_mesh(mesh)
    ms, o = least(repeat, lambda: m.subdivide_loop(1))
    say(ms, vertices=len(o.vertices), faces=len(o.triangles))


def load_open3d(repeat, mesh):
    import open3d as o3d
    ms, m = least(repeat, lambda: o3d.io.read_triangle_mesh(mesh))
    say(ms, vertices=len(m.vertices), faces=len(m.triangles))


def vtk_mesh(mesh):
    from vtkmodules.vtkIOGeometry import vtkOBJReader
    r = vtkOBJReader()
    r.SetFileName(mesh)
    r.Update()
    return r.GetOutput()


def sign_vtk(repeat, mesh, points):
    from vtkmodules.util import numpy_support as ns
    from vtkmodules.vtkCommonCore import vtkPoints, vtkSMPTools
    from vtkmodules.vtkCommonDataModel import vtkPolyData
    from vtkmodules.vtkFiltersModeling import vtkSelectEnclosedPoints
    from vtkmodules.vtkCommonDataModel import vtkPolyData as Poly
    m, p, pts = vtk_mesh(mesh), np.fromfile(points, np.float32).reshape(-1, 3), vtkPoints()
    bare = Poly()
    bare.SetPoints(m.GetPoints())
    bare.SetPolys(m.GetPolys())
    pts.SetData(ns.numpy_to_vtk(p, deep=True))
    data = vtkPolyData()
    data.SetPoints(pts)
    if 'THREADS' in os.environ:
        vtkSMPTools.Initialize(int(os.environ['THREADS']))

    def run():
        f = vtkSelectEnclosedPoints()
        f.SetInputData(data)
        f.SetSurfaceData(bare)
        f.SetTolerance(1e-9)
        f.Update()
        return f.GetOutput().GetPointData().GetArray('SelectedPoints')
    ms, a = least(repeat, run)
    say(ms, points=len(p), inside=int(ns.vtk_to_numpy(a).sum()), backend=vtkSMPTools.GetBackend(),
        threads=vtkSMPTools.GetEstimatedNumberOfThreads())


def read_obj(path):
    v, f = [], []
    for line in open(path):
        w = line.split()
        if w and w[0] == 'v':
            v.append(w[1:4])
        elif w and w[0] == 'f':
            f.append([int(x.split('/')[0]) - 1 for x in w[1:4]])
    return np.array(v, np.float64), np.array(f, np.int64)


def points(mesh, n, file):
    v, _ = read_obj(mesh)
    low, high = v.min(0), v.max(0)
    np.random.default_rng(1).uniform(low, high, (int(n), 3)).astype(np.float32).tofile(file)


def border(v, f):
    n = collections.Counter(tuple(sorted(e)) for t in f.tolist() for e in zip(t, t[1:] + t[:1]))
    v = v.astype(np.float32)
    return {frozenset((v[a].tobytes(), v[b].tobytes())) for (a, b), k in n.items() if k == 1}


def distances(v, f, at):
    from vtkmodules.util import numpy_support as ns
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData
    from vtkmodules.vtkFiltersCore import vtkImplicitPolyDataDistance
    mesh, pts, cells = vtkPolyData(), vtkPoints(), vtkCellArray()
    pts.SetData(ns.numpy_to_vtk(np.ascontiguousarray(v, np.float64), deep=True))
    cells.SetCells(len(f), ns.numpy_to_vtkIdTypeArray(np.hstack([np.full((len(f), 1), 3, np.int64), f]).ravel(), deep=True))
    mesh.SetPoints(pts)
    mesh.SetPolys(cells)
    d = vtkImplicitPolyDataDistance()
    d.SetInput(mesh)
    out = ns.numpy_to_vtk(np.zeros(len(at)), deep=True)
    d.FunctionValue(ns.numpy_to_vtk(np.ascontiguousarray(at, np.float64), deep=True), out)
    return np.abs(ns.vtk_to_numpy(out))


def rms(mesh, *simple):
    v, f = read_obj(mesh)
    diagonal, rng, edges = np.linalg.norm(v.max(0) - v.min(0)), np.random.default_rng(2), border(v, f)
    t = v[f]
    area = np.linalg.norm(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), axis=1)
    pick, uv = t[rng.choice(len(f), 200000, p=area / area.sum())], rng.random((200000, 2))
    uv[uv.sum(1) > 1] = 1 - uv[uv.sum(1) > 1]
    on = pick[:, 0] + uv[:, :1] * (pick[:, 1] - pick[:, 0]) + uv[:, 1:] * (pick[:, 2] - pick[:, 0])
    for path in simple:
        sv, sf = read_obj(path)
        d = distances(sv, sf, np.vstack([v, on]))
        b = border(sv, sf)
        print('rms %.6g max %.6g faces %d border-edges %d kept %d of %d' % (
            np.sqrt((d ** 2).mean()) / diagonal, d.max() / diagonal, len(sf), len(b), len(b & edges), len(edges)))


if __name__ == '__main__':
    case, rest = sys.argv[1].replace('-', '_'), sys.argv[2:]
    if case in ('points', 'rms', 'volume'):
        globals()[case](*rest)
    else:
        globals()[case](int(rest[0]), *rest[1:])

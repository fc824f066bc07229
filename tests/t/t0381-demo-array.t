#!/bin/sh
# The main job on a real Slurm: rendered scans become meshes, whatever became of the environment on the way; with the
# CUDA module, a node without the CUDA runtime refuses its task before the runner starts.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/launch.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip_all 'needs root for the throw-away cluster'
for p in slurmctld slurmd munged sinfo sbatch unshare; do
    command -v $p >/dev/null || skip_all "no $p here (Debian: slurmctld slurmd slurm-client munge)"
done
unshare -m -u true 2>/dev/null || skip_all 'this container lets no one make a mount namespace'
cluster=$abs_top_srcdir/tests/cluster/cluster
C=$T/cluster
trap '"$cluster" stop "$C" 2>/dev/null; chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN CUDA_HOME CUDA_PATH
cd "$T" || exit 99

for scene in room office objects columns; do
    tap 0 "a scan of the scene '$scene'" recon-run --pipeline make-scan --out "$T/scans/$scene" --set scene.scene=$scene \
        --set scene.frames=6 --set scene.width=160 --set scene.height=120
    echo "scans/$scene" >>scans.txt
done
cat >job.conf <<'END'
name = "demo";  datasets = "scans.txt";  pipeline = "rgbd-to-mesh";  device = "cpu";
params = { fuse = { voxel = 0.06; }; preview = { width = 160; height = 120; }; };
sbatch = { time = "0:05:00"; exclude = "h1"; };
END

# with the CUDA module built, every node but h1 sees the toolkit that it was built with
tree=$T/cuda; mkdir "$tree"
cudart=$(recon-check --libs "$abs_top_builddir/lib/recon/cuda.so" 2>/dev/null | sed -n 's/^libcudart\.so[.0-9]* => *\(\/.*\)/\1/p')
[ -z "$cudart" ] || tree=$(realpath "$(dirname "$(realpath "$cudart")")/..") # a link in /usr/local/lib may lead there
case $tree in /usr/local/cuda* | /opt/* | "$T"/*) ;; *) cudart= tree=$T/cuda ;; esac
tap 0 'the cluster starts' "$cluster" start --cuda "$tree" --cuda-tree "$tree" --without-cuda h1 "$C"
eval "$("$cluster" env "$C")"

all_done() { # all_done RUN 'name'
    same "$(recon-report --format json "$T/$1" | grep -o '"status": *"done"' | wc -l)" 4 "$2: every dataset done"
    same "$(find "$T/$1/out/0" -mindepth 2 -name mesh.ply -size +1k | wc -l)" 4 "$2: every mesh is there"
    tap 0 "$2: what was written is valid" validate_run "$T/$1"
}
tap 0 'an array over the scans' recon-submit --run-dir "$T/plain" --watch job.conf
all_done plain 'an array'
tap 0 '--export=NONE' recon-submit --run-dir "$T/none" --export=NONE --watch job.conf
all_done none '--export=NONE'

# a shell that leads to other libraries of the same names, without their symbols
mkdir wrong
for l in libspng.so.0 libturbojpeg.so.0 libjansson.so.4; do
    echo 'int nothing_of_use;' | ${CC:-cc} -x c -shared -fPIC -Wl,-soname,$l -o wrong/$l - || skip_all 'no C compiler'
done
tap 0 'a pin from the right shell' recon-pin capture -o "$T/env.pin" "$abs_top_builddir/bin/recon-run" \
    "$abs_top_builddir/lib/recon/cpu.so"
LD_LIBRARY_PATH=$T/wrong tap 0 'in the wrong shell' recon-run --list
has "$T/out" 'undefined symbol: spng' 'the runner has no kernels'
LD_LIBRARY_PATH=$T/wrong tap 0 'an array from the wrong shell' recon-submit --run-dir "$T/shell" --set pin="$T/env.pin" \
    --watch job.conf
all_done shell 'from the wrong shell'

if [ -n "$cudart" ]; then
    LD_LIBRARY_PATH=$tree/lib64 tap 75 'the CUDA job on a node without the runtime does not end well' recon-submit \
        --run-dir "$T/unfit" --set device=cuda --set retry.node_unfit=0 --set sbatch.exclude=a1 --nodelist h1 \
        --gres gpu:h100:1 --watch job.conf
    E=$T/unfit/events/0/0/0.0.jsonl
    same "$(event "$E" end status)" refused 'its tasks are refused'
    same "$(event "$E" finding object | grep '^libcudart')" "$(readelf -d "$cudart" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" \
        'for want of the runtime'
    has "$E" "$tree/lib64" 'and where it was looked for is told'
    same "$(cat "$T"/unfit/events/0/0/*.jsonl | grep -c '"type":"step"')" 0 'no step ran'
else
    skip 'a node without the CUDA runtime: the CUDA module is not built here'
fi
tap 0 'the cluster stops' "$cluster" stop "$C"
finish

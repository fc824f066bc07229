#!/bin/sh
# Arrays on a real Slurm: every dataset done, whatever became of the environment on the way; a node without the runtime
# refuses its task before the program starts.
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
unset LD_LIBRARY_PATH RECON_CHECK RECON_PIN

# A program with two libraries: one that has a right and a wrong version, and a runtime that node h1 lacks.
mkdir -p "$T/cuda/lib64" "$T/right" "$T/wrong" "$T/d"
cat >"$T/prog.c" <<'C'
#include <stdio.h>
#include <unistd.h>
const char *version_of_test(void);
int runtime_of_test(void);
int main(int argc, char **argv)
{
    char path[4096], host[256] = "", line[256] = "";
    FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL, *out;

    if (!in || !fgets(line, sizeof(line), in))
        return 65;
    gethostname(host, sizeof(host) - 1);
    snprintf(path, sizeof(path), "%s/result.txt", argv[2]);
    out = fopen(path, "w");
    if (!out)
        return 73;
    fprintf(out, "%s %d %s %s", version_of_test(), runtime_of_test(), host, line);
    return fclose(out) ? 74 : 0;
}
C
lib() { # lib FILE SONAME 'C text'
    echo "$3" >"$T/lib.c"
    ${CC:-cc} -shared -fPIC -Wl,-soname,"$2" -o "$1" "$T/lib.c"
}
lib "$T/cuda/lib64/libcudart-of-test.so.13" libcudart-of-test.so.13 'int runtime_of_test(void) { return 13; }'
for v in right wrong; do
    lib "$T/$v/libversion-of-test.so.1" libversion-of-test.so.1 "const char *version_of_test(void) { return \"$v\"; }"
done
${CC:-cc} -o "$T/prog" "$T/prog.c" "$T/right/libversion-of-test.so.1" "$T/cuda/lib64/libcudart-of-test.so.13" ||
    skip_all 'no C compiler'
for i in 1 2 3 4 5 6 7 8; do
    echo "scan $i" >"$T/d/s$i"
    echo "$T/d/s$i" >>"$T/list.txt"
done
good=$T/right:$T/cuda/lib64

tap 0 'the cluster starts' "$cluster" start --cuda "$T/cuda" --cuda-tree "$T/cuda" --without-cuda h1 "$C"
eval "$("$cluster" env "$C")"
cd "$T" || exit 99
tap 0 'a pin from the right shell' env LD_LIBRARY_PATH="$good" recon-pin capture -o "$T/env.pin" -- "$T/prog"

submit() { # submit RUN OPTION...: watched to its end
    run=$T/run-$1; shift
    recon-submit --datasets "$T/list.txt" --run-dir "$run" --time 0:05:00 --watch "$@" -- "$T/prog" '{dataset}' '{out}' \
        >"$T/out" 2>"$T/err" </dev/null
}
all_right() { # all_right STATUS 'name'
    same "$1" 0 "$2: submitted and watched to the end"
    same "$(cat "$run"/out/0/*/result.txt 2>/dev/null | sed 's/ [a-z][0-9] / /' | sort | tr '\n' ' ')" \
        "$(for i in 1 2 3 4 5 6 7 8; do echo "right 13 scan $i"; done | tr '\n' ' ')" "$2: every result is there, by the right libraries"
    same "$(cat "$run"/events/0/0/*.jsonl | grep -c '"type":"end".*"status":"ok"')" 8 "$2: every end says ok"
    same "$(recon-report --format json "$run" | grep -o '"status": *"done"' | wc -l)" 8 "$2: the report counts eight done"
}

LD_LIBRARY_PATH=$good submit plain --exclude h1
all_right $? 'an array'
LD_LIBRARY_PATH=$good submit none --exclude h1 --export=NONE
all_right $? '--export=NONE'
LD_LIBRARY_PATH=$T/wrong:$T/cuda/lib64 submit wrong --exclude h1 --set pin="$T/env.pin"
all_right $? 'from a shell that leads to wrong versions'
env -i PATH="$PATH" SLURM_CONF="$SLURM_CONF" recon-submit --datasets "$T/list.txt" --run-dir "$T/run-bare" --time 0:05:00 \
    --set pin="$T/env.pin" --exclude h1 --watch -- "$T/prog" '{dataset}' '{out}' >"$T/out" 2>"$T/err" </dev/null
st=$? run=$T/run-bare
all_right $st 'from a bare environment (cron)'

# a step inside the task, where sbatch has set SLURM_EXPORT_ENV=NONE
run=$T/run-step
LD_LIBRARY_PATH=$good recon-submit --datasets "$T/list.txt" --run-dir "$run" --time 0:05:00 --exclude h1 --export=NONE --watch \
    -- srun -n 1 "$T/prog" '{dataset}' '{out}' >"$T/out" 2>"$T/err" </dev/null
all_right $? 'srun within the task, --export=NONE'

# ---- the runner ----
if command -v python3 >/dev/null && recon-run --list 2>/dev/null | grep -q '^volume.read'; then
    python3 - "$T" <<'P'
import math, struct, sys, zipfile
n = 16
def npy(shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += ' ' * (63 - (10 + len(head)) % 64) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<%df' % len(values), *values)
for i in (1, 2, 3):
    ball = [max(-1, min(1, (math.dist((x, y, z), (7.7, 7.2, 7.4)) - 3 - i / 2) / 4))
            for x in range(n) for y in range(n) for z in range(n)]
    with zipfile.ZipFile('%s/d/ball%d.npz' % (sys.argv[1], i), 'w') as f:
        f.writestr('tsdf.npy', npy((n, n, n), ball))
        f.writestr('weight.npy', npy((n, n, n), [1] * n**3))
        f.writestr('origin.npy', npy((3,), [0, 0, 0]))
        f.writestr('voxel.npy', npy((), [0.1]))
P
    ls "$T"/d/ball*.npz >"$T/balls.txt"
    cat >"$T/balls.conf" <<'P'
version = 1;  name = "balls";
steps = ( { name = "read"; kernel = "volume.read"; }, { name = "surface"; kernel = "mesh.marching_cubes"; },
          { name = "save"; kernel = "mesh.write"; params = { file = "mesh.ply"; }; } );
P
    printf '%s\n' 'name = "balls"; datasets = "balls.txt"; pipeline = "balls.conf"; device = "cpu";' \
        'sbatch = { exclude = "h1"; time = "0:05:00"; };' >"$T/job.conf"
    tap 0 'a pipeline over an array' recon-submit --run-dir "$T/run-balls" --watch "$T/job.conf"
    same "$(ls "$T"/run-balls/out/0/*/mesh.ply 2>/dev/null | wc -l)" 3 'every mesh is there'
    cat "$T"/run-balls/events/0/0/*.jsonl >"$T/events" 2>/dev/null
    same "$(grep -c '"type":"dataset".*"status":"done"' "$T/events")" 3 'the runner wrote its events through the launcher'
    same "$(grep '"type":"end"' "$T/events" | grep -c '"done":1,')" 3 'and the launcher counted them'
    tap 0 'what was written is valid' validate_run "$T/run-balls"
else
    skip 'a pipeline over an array: no python3 or no kernels here'
fi

# ---- the node without the runtime ----
LD_LIBRARY_PATH=$good submit unfit --nodelist h1 --set retry.node_unfit=0
st=$?
if [ $st != 0 ]; then ok "a node without the runtime: the submission does not end well ($st)"
else not_ok 'a node without the runtime' "status $st" "$(cat "$T/out" "$T/err")"; fi
E=$run/events/0/0/0.0.jsonl
same "$(event "$E" attempt node)" h1 'the task came to that node'
same "$(event "$E" end status)" refused 'and was refused'
same "$(event "$E" finding rule | grep -c '^lib-not-found$')" 1 'with lib-not-found'
same "$(event "$E" finding object | grep libcudart-of)" libcudart-of-test.so.13 'of the runtime'
has "$E" "$T/cuda/lib64" 'and where it was looked for'
same "$(cat "$run"/events/0/0/*.jsonl | grep -c '"status":"refused"')" 8 'every task of the array was'
if ls "$run"/out/0/*/result.txt >/dev/null 2>&1; then not_ok 'nothing ran there' "$(ls "$run"/out/0)"; else ok 'nothing ran there'; fi
cat "$run"/logs/* >"$T/logs"
has "$T/logs" 'lib-not-found: libcudart-of-test.so.13' 'the task log says so'
has "$run/bad-nodes.jsonl" '"node":"h1"' 'the node is written down as bad'

# ---- slurm's own ways to end a task ----
cat >"$T/slow" <<E2
#!/bin/sh
echo half >"\$2/result.txt"
: >"$T/up"
exec sleep 300
E2
chmod +x "$T/slow"
head -n 1 "$T/list.txt" >"$T/one.txt"
recon-submit --datasets "$T/one.txt" --run-dir "$T/run-cancelled" --time 0:05:00 --exclude h1 --parsable -- \
    "$T/slow" '{dataset}' '{out}' >"$T/out" 2>"$T/err" </dev/null
job=$(cut -f 2 "$T/out")
until_true 20 test -e "$T/up" || not_ok 'the slow task starts' "$(cat "$T/err")"
scancel "$job"
until_true 20 grep -q '"type":"end"' "$T/run-cancelled/events/0/0/0.0.jsonl"
same "$(event "$T/run-cancelled/events/0/0/0.0.jsonl" end status)" killed 'a cancelled task records its end'
same "$(ls -A "$T/run-cancelled/out/0" 2>/dev/null)" '' 'and leaves nothing that looks whole'
tap 0 'the cluster stops' "$cluster" stop "$C"
finish

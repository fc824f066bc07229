#!/bin/sh
# The layers of a job, --show-config, and what is refused before anything is made: one line, 64, file and line.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset SLURM_CONF
HOME=$T/home; export HOME
mkdir -p "$T/home/.config/recon" "$T/w" "$T/jobs"
cd "$T/w" || exit 99
echo 'sbatch = { partition = "user"; time = "10"; };' >"$T/home/.config/recon/recon.conf"
echo 'max_running = 3;  sbatch = { account = "project"; };' >recon.conf
echo x >"$T/jobs/d1"; echo d1 >"$T/jobs/list.txt"
cat >"$T/jobs/job.conf" <<'END'
name = "kitchen";  datasets = "list.txt";  program = ( "cat", "{dataset}" );
sbatch = { partition = "gpu";  gres = "gpu:h100:1";  cpus-per-task = 8;  mem = "32G";  hold = true; };
END
RECON_RETRY_NODE_UNFIT=5 SBATCH_QOS=night tap 0 'show-config' recon-submit --show-config --set max_tasks=7 \
    --mem=64G --no-requeue "$T/jobs/job.conf"
cat >"$T/want" <<END
name = "kitchen";
datasets = "$T/jobs/list.txt";
program = [ "cat", "{dataset}" ];
device = "auto";
sbatch = { time = "10"; account = "project"; partition = "gpu"; gres = "gpu:h100:1"; cpus-per-task = 8; mem = "64G"; hold = true; qos = "night"; no-requeue = true; };
max_running = 3;
max_tasks = 7;
datasets_per_task = 0;
retry = { node_unfit = 5; };
submit = { via = "auto"; };
END
cp "$T/out" "$T/shown"
tap 0 'is what the layers say' diff "$T/want" "$T/shown"
cp "$T/shown" "$T/jobs/again.conf"
tap 0 'what is shown is a job' recon-submit --show-config "$T/jobs/again.conf"
cp "$T/out" "$T/shown"
tap 0 'that says the same' diff "$T/want" "$T/shown"
SBATCH_ARRAY_INX=0-3 tap 0 'a variable that would break the split' recon-submit --show-config "$T/jobs/job.conf"
has "$T/err" "SBATCH_ARRAY_INX is set to '0-3' and not taken" 'is told'
one_line "$T/err" 'in one line'

refused() { # refused STATUS 'text' COMMAND...
    want=$1 text=$2; shift 2
    tap "$want" "$text" "$@"
    has "$T/err" "$text" 'says so'
    one_line "$T/err" 'in one line'
}
job() { printf '%s\n' "$@" >"$T/jobs/bad.conf"; }
job 'name = "x";' 'max_runing = 3;'
refused 64 "bad.conf:2: unknown key 'max_runing', the nearest is 'max_running'" recon-submit "$T/jobs/bad.conf"
job 'name = "x";' 'sbatch = {' '  partitoin = "gpu"; };'
refused 64 "bad.conf:3: sbatch has no option 'partitoin', the nearest is 'partition'" recon-submit "$T/jobs/bad.conf"
job 'name = "x"; datasets = "list.txt";'  'program = ;'
refused 64 'bad.conf:2: syntax error' recon-submit "$T/jobs/bad.conf"
job 'name = "x"; datasets = "empty.txt"; program = "cat";'
: >"$T/jobs/empty.txt"
refused 64 'empty.txt' recon-submit --local "$T/jobs/bad.conf"
job 'name = "x"; datasets = "none.txt"; program = "cat";'
refused 64 'none.txt' recon-submit --local "$T/jobs/bad.conf"
job 'name = "x"; datasets = "list.txt"; program = "no-such-program-here";'
refused 127 "'no-such-program-here' is nowhere in PATH" recon-submit --local "$T/jobs/bad.conf"
job 'name = "x"; datasets = "list.txt"; pipeline = "no-such-pipeline";'
refused 64 "'no-such-pipeline' is in none of" recon-submit --local "$T/jobs/bad.conf"
refused 64 'no.conf' recon-submit "$T/jobs/no.conf"
refused 64 "--set 'divice=cpu': unknown key 'divice', the nearest is 'device'" recon-submit --set divice=cpu "$T/jobs/job.conf"
refused 64 "'array' is not taken" recon-submit --array=0-3 "$T/jobs/job.conf"
refused 64 "'time' wants minutes" recon-submit -t soon "$T/jobs/job.conf"
refused 64 "unknown option '--partitoin', the nearest is '--partition'" recon-submit --partitoin=x "$T/jobs/job.conf"
refused 64 'all tasks would write one file' recon-submit -o all.log "$T/jobs/job.conf"
refused 64 'what is to be run?' recon-submit
refused 64 '--datasets LIST is missing' recon-submit -- cat
refused 64 'no run directory' recon-submit --resume "$T/jobs"
RECON_MAX_RUNNING=many refused 64 "environment RECON_MAX_RUNNING: 'max_running' wants an integer" recon-submit "$T/jobs/job.conf"
mkfifo "$T/jobs/fifo"
refused 64 'is a FIFO' recon-submit "$T/jobs/fifo"

# only the backend knows libslurm
if command -v readelf >/dev/null; then
    for p in "$abs_top_builddir"/bin/recon-*; do
        [ -x "$p" ] && [ -f "$p" ] && readelf -d "$p" 2>/dev/null | grep -q libslurm && not_ok "$p needs libslurm"
    done
    ok 'no program needs libslurm'
fi

# nothing is left of what failed
tap 73 'a run directory under a file' recon-submit --local --run-dir "$T/jobs/list.txt/run" "$T/jobs/job.conf"
one_line "$T/err" 'in one line'
mkdir "$T/there"
tap 73 'a run directory that exists' recon-submit --local --run-dir "$T/there" "$T/jobs/job.conf"
has "$T/err" "exists already" 'says so'
if [ ! -e runs ]; then ok 'no half-made run is left'; else not_ok 'no half-made run is left' "$(find runs)"; fi
finish

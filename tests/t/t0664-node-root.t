#!/bin/bash
# recon-check --node as root in a hostile environment: no file, variable or path of a user is looked at, none of its libraries
# or programs is used. And the failures of nodes that clusters know (cases D01 to D11), from their own inputs where they are.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/launch.sh"
[ "$(id -u)" = 0 ] || skip_all 'is about what runs as root'
cd "$T" || exit 99
umask 022
unset TMPDIR
check=$(command -v recon-check)

# ---- hostile: every variable that a library or a program of the probes might follow leads into one folder
E=$T/evil
mkdir -p "$E/bin" "$E/lib" "$E/.config/recon" "$T/pins" "$T/site"
for p in nvidia-smi scontrol sh bash env recon-probe ldconfig; do printf '#!/bin/sh\n: >%s/ran.%s\n' "$E" $p >"$E/bin/$p"; chmod 755 "$E/bin/$p"; done
for l in libc.so.6 libhwloc.so.15 libnvidia-ml.so.1 libcuda.so.1 libelf.so.1; do echo garbage >"$E/lib/$l"; done
printf 'deadline = 1.0; scontrol = "%s/bin/scontrol"; nvidia_smi = "%s/bin/nvidia-smi"; pins = "%s";\n' "$E" "$E" "$E" >"$E/node.conf"
cp "$E/node.conf" "$E/.config/recon/node.conf"
printf '#!/bin/sh\nenv >%s/smi.env\npwd >%s/smi.pwd\n' "$T/site" "$T/site" >"$T/site/nvidia-smi"
printf '#!/bin/sh\nenv >%s/scontrol.env\necho "NodeName=n1 State=IDLE Reason=none"\n' "$T/site" >"$T/site/scontrol"
chmod 755 "$T/site/nvidia-smi" "$T/site/scontrol"
cat >node.conf <<END2
pins = "$T/pins"; state = "$T/state"; deadline = 5.0; nvidia_smi = "$T/site/nvidia-smi"; scontrol = "$T/site/scontrol";
kernel_log = "$T/site/log"; mounts = [ "/proc" ]; facts = "$T/site"; drain_on = [ "gpu-lost" ];
END2
: >"$T/site/log"
pin "$T/pins/site.pin" "$(command -v sleep)"
hostile() { # hostile COMMAND...: in the user's folder, with everything that leads there
    (cd "$E" && exec env -i PATH="$E/bin" HOME="$E" USER=eve LOGNAME=eve SHELL="$E/bin/sh" TMPDIR="$E" TMP="$E" XDG_CONFIG_HOME="$E/.config" \
        XDG_RUNTIME_DIR="$E" XDG_CACHE_HOME="$E" LANG=eve LC_ALL=eve LOCPATH="$E" NLSPATH="$E/%N" GCONV_PATH="$E/lib" LANGUAGE=eve \
        TZ=":$E/tz" TZDIR="$E" RESOLV_HOST_CONF="$E/hosts" HOSTALIASES="$E/aliases" NIS_PATH="$E" LOCALDOMAIN=eve \
        HWLOC_XMLFILE="$E/topology.xml" HWLOC_FSROOT="$E" HWLOC_PLUGINS_PATH="$E/lib" HWLOC_COMPONENTS=xml HWLOC_DUMPED_HWDATA_DIR="$E" \
        CUDA_HOME="$E" CUDA_PATH="$E" CUDA_VISIBLE_DEVICES=9 CUDA_CACHE_PATH="$E" ROCM_PATH="$E" CONDA_PREFIX="$E" VIRTUAL_ENV="$E" \
        RECON_PIN="$E/env.pin" RECON_RUN="$E" RECON_CHECK=error RECON_KERNELS="$E" RECON_PROBE="$E/bin/recon-probe" \
        SLURM_CONF="$E/slurm.conf" SLURM_JOB_ID=5 SLURM_JOB_COMMENT="$E" SLURM_JOB_WORK_DIR="$E" SLURM_JOB_STDOUT="$E/out" \
        SLURM_JOB_USER=eve SLURM_JOB_UID=1000 SLURM_JOB_ACCOUNT="$E" SLURM_SUBMIT_DIR="$E" SLURMD_NODENAME=n1 \
        BASH_ENV="$E/bin/bash" ENV="$E/bin/sh" PYTHONPATH="$E" "$@")
}
for m in prolog health; do
    hostile "$check" --node=$m --config "$T/node.conf" >"$T/out" 2>"$T/err" </dev/null; got=$?
    if [ $got = 0 ]; then ok "$m in a hostile environment"; else not_ok "$m in a hostile environment" "$got" "$(cat "$T/out" "$T/err")"; fi
    if ls "$E"/ran.* >/dev/null 2>&1; then not_ok 'nothing of the user is run' "$(ls "$E")"; else ok 'nothing of the user is run'; fi
done
if [ -s "$T/site/smi.env" ] && [ -s "$T/site/scontrol.env" ]; then ok 'the configured programs ran'; else not_ok 'the configured programs ran' "$(ls "$T/site")"; fi
if grep -q evil "$T/site/smi.env" "$T/site/scontrol.env"; then not_ok 'without one variable of the user' "$(cat "$T/site/smi.env")"; else ok 'without one variable of the user'; fi
if command -v strace >/dev/null && strace -f -o "$T/trial" true 2>/dev/null; then
    for m in prolog health; do
        rm -f "$T/trace"
        hostile "$(command -v strace)" -f -y -qq -o "$T/trace" -E "LD_LIBRARY_PATH=$E/lib" -E "LD_PRELOAD=$E/lib/libelf.so.1" \
            -e trace=file,process,readlink "$check" --node=$m --config "$T/node.conf" >"$T/out" 2>"$T/err" </dev/null
        n_calls=$(grep -c . "$T/trace")
        # the first line is the start of recon-check itself; a working directory is no path that was looked at
        tail -n +2 "$T/trace" | grep -v 'AT_FDCWD<[^>]*>, "/' | grep -F "$E" >"$T/looked"
        tail -n +2 "$T/trace" | grep -F "\"$E" >>"$T/looked"
        tail -n +2 "$T/trace" | grep -E '^[0-9]+ +[a-z0-9_]+\((AT_FDCWD<[^>]*>, )?"[^/"]' >"$T/relative"
        if [ "$n_calls" -gt 20 ] && [ ! -s "$T/looked" ]; then ok "$m: $n_calls calls, not one with a path of the user"
        else not_ok "$m looks at a path of the user" "$n_calls calls" "$(head -n 5 "$T/looked")"; fi
        if [ ! -s "$T/relative" ]; then ok 'and none with a relative one'; else not_ok 'and none with a relative one' "$(head -n 5 "$T/relative")"; fi
    done
else
    skip 'what is looked at: no strace here'
fi

# ---- the cases, from their own inputs
cases=$DATA/../cases
if [ ! -d "$cases/D01-prolog-path-missing" ]; then skip 'the cases are not here'; finish; fi
case_of() { # case_of NAME: builds its input in a copy
    cp -r "$cases/$1" "$T/$1" && chmod -R u+w "$T/$1" && bash "$T/$1/make.sh" && chmod -R go-w "$T/$1" && I=$T/$1/in || exit 99
}
within() { if [ $((($(date +%s%N) - t0) / 1000000)) -lt "$1" ]; then ok "$2"; else not_ok "$2" "$((($(date +%s%N) - t0) / 1000000)) ms"; fi; }
conf() { printf '%s\n' "pins = \"$T/none\"; state = \"$T/state\";" "$@" >case.conf; }

case_of D01-prolog-path-missing
for m in prolog health; do
    tap 0 "D01, $m" env $(cat "$I/prolog.env") recon-check --node=$m --config /etc/recon/none.conf
    has "$T/err" 'nothing was checked' 'a line says that nothing was checked'
done
for c in D03-health-timeout-names-check D07-smi-hangs; do
    case_of $c
    conf "deadline = 5.0; nvidia_smi = \"$I/bin/nvidia-smi\"; drain_on = [ \"gpu-hung\" ];"
    t0=$(date +%s%N)
    tap 0 "${c%%-*}" recon-check --node=health --config case.conf
    within 10000 'ends within 10 s for a limit of 5'
    has "$T/out" 'gpu-hung: nvidia-smi' 'names nvidia-smi as hung'
    if pgrep -f "$I/bin/" >/dev/null; then not_ok 'no process is left' "$(pgrep -af "$I/bin/")"; else ok 'no process is left'; fi
done
case_of D05-xid-79-line
conf "deadline = 5.0; kernel_log = \"$I/kmsg\"; drain_on = [ \"gpu-lost\" ];"
tap 2 'D05' recon-check --node=health --config case.conf --format nagios
tap 0 'D05' recon-check --node=health --config case.conf
has "$T/out" 'error: gpu-lost: 0000:44:00: Xid 79' 'an error with the GPU and the number'
has "$T/out" 'drain, then reset the GPU or reboot' 'and the remedy'
case_of D09-remap-pending
printf '#!/bin/sh\ncat %s/q.txt\n' "$I" >smi; chmod 755 smi
conf "deadline = 5.0; nvidia_smi = \"$T/smi\"; drain_on = [ \"gpu-remap-pending\", \"gpu-error-state\" ];"
tap 1 'D09' recon-check --node=health --config case.conf --format nagios
tap 0 'D09' recon-check --node=health --config case.conf
has "$T/out" 'warn: gpu-remap-pending' 'a warning'
has "$T/out" 'reset the GPU' 'reset it'
case_of D11-kill-task-timeouts
echo a >list.txt
tap 69 'D11' env SLURM_CONF="$I/slurm.conf" recon-submit --test-only --set submit.via=nobody --datasets list.txt -- cat '{dataset}'
has "$T/err" 'unkillable-timeout-low' 'the timeout is told'
has "$T/err" 'at least 300 are wanted' 'with the bound'
pin "$T/sh.pin" "$(readlink -f "$(command -v bash)")"
cat >group.sh <<'END2'
trap "" TERM INT
for i in 1 2 3; do (trap "" TERM INT; (trap "" TERM; while :; do sleep 0.1; done) & while :; do sleep 0.1; done) & done
pgrep -g $$ >"$1.new"; mv "$1.new" "$1"
while :; do sleep 0.1; done
END2
recon-launch --pin "$T/sh.pin" --grace 2 -- "$(readlink -f "$(command -v bash)")" group.sh "$T/group" 2>"$T/err" & l=$!
until_true 10 test -s "$T/group" || { not_ok 'the program starts' "$(cat "$T/err")"; kill $l; finish; }
pids=$(tr '\n' ' ' <"$T/group") t0=$(date +%s%N)
kill -TERM $l; wait $l; same "$?" 137 'a group that ignores TERM is ended'
within 6000 'at the end of its grace of 2 s'
pgrep -g "$(echo $pids | cut -d' ' -f1)" >"$T/left"
if [ "$(echo $pids | wc -w)" -ge 4 ] && [ ! -s "$T/left" ]; then ok "and none of its $(echo $pids | wc -w) processes is left"; else not_ok 'none is left' "$pids" "$(cat "$T/left")"; fi
finish

#!/bin/sh
# The script: golden text, names that want quoting, templates.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset SLURM_CONF
HOME=$T/home; export HOME
mkdir -p "$T/home" "$T/w/scans"
cd "$T/w" || exit 99
umask 027
echo x >scans/a; echo 'scans/a' >list.txt
PATH=$abs_top_builddir/bin:/usr/bin:/bin
bin=$abs_top_builddir/bin
bare() { env -i HOME="$HOME" PATH="$PATH" CUDA_HOME="$CUDA" "$@"; }

CUDA=/opt/cuda-13
tap 0 'dry run' bare recon-submit --dry-run --run-dir "$T/w/run" -p gpu --gres=gpu:h100:1 -t 0:30:00 --mem=32G \
    --set max_running=20 --set name=kitchen --datasets list.txt -- cat -n {dataset} 'two words' {out}/x
sed -E -e 's/kitchen-[0-9a-f]{8}/kitchen-ID/' -e "s:$T/w:W:g" -e "s:$bin:BIN:g" -e 's:recon-submit [0-9.]+, template .*/default:recon-submit V, template default:' \
    "$T/out" | grep -vE '^(export (PATH|LANG|LC_|SHELL)|unset )' >"$T/got"
cat >"$T/want" <<'END'
#!/bin/bash
#SBATCH --job-name=kitchen-ID.0
#SBATCH --partition=gpu
#SBATCH --gres=gpu:h100:1
#SBATCH --mem=32G
#SBATCH --time=0-00:30:00
#SBATCH --array=0
#SBATCH --chdir="W"
#SBATCH --output="W/run/logs/%A_%a.log"
#SBATCH --open-mode=append
# recon-submit V, template default.sbatch. Needs no ~/.bashrc, no module, no --export.

set -e
umask 0027
export SLURM_EXPORT_ENV=ALL
export CUDA_HOME='/opt/cuda-13'
export RECON_PIN='W/run/env.pin'

exec 'BIN/recon-launch' --pin "$RECON_PIN" --run 'W/run' --sub 0 --task "${RECON_TASK:-${SLURM_ARRAY_TASK_ID:?}}" -- '/usr/bin/cat' -n '{dataset}' 'two words' '{out}/x'
END
has "$T/err" 'would make run directory' 'the plan is on stderr'
tap 0 'the script is as it should be' diff "$T/want" "$T/got"
if [ -e run ]; then not_ok 'a dry run makes nothing'; else ok 'a dry run makes nothing'; fi

# odd names: the script has to be sh that gives each of them back
odd="it's \$(touch bad) \`x\` \"q\" \\ 100% #"
mkdir -p "$T/w/o/$odd"
cp list.txt "$T/w/o/$odd/"; mkdir "$T/w/o/$odd/scans"; echo x >"$T/w/o/$odd/scans/a"
CUDA=$odd
tap 64 'a backslash in the run directory is refused' bare recon-submit --dry-run --run-dir "$T/w/a\\b" --datasets list.txt -- cat {dataset}
has "$T/err" 'holds a backslash' 'and says so'
nl=$(printf 'a\nb'); 
tap 64 'a line break in the run directory is refused' bare recon-submit --dry-run --run-dir "$T/w/$nl" --datasets list.txt -- cat {dataset}
has "$T/err" 'holds a line break' 'and says so'
run=$(printf "it's \$(touch bad) \`x\` \"q\" 100%% # \377")
tap 0 'odd names everywhere' bare recon-submit --dry-run --run-dir "$T/w/$run" --comment="$odd" --datasets list.txt -- \
    printf '%s\n' "$odd" '{dataset}' '$HOME' ''
cp "$T/out" "$T/script"
# what the exec line says, one argument a line
sed -e "s:^exec '[^']*':printf '%s\\\\n':" "$T/script" >"$T/say.sh"
SLURM_ARRAY_TASK_ID=7 bash "$T/say.sh" >"$T/got"
printf '%s\n' --pin "$T/w/$run/env.pin" --run "$T/w/$run" --sub 0 --task 7 -- /usr/bin/printf '%s\n' "$odd" '{dataset}' '$HOME' '' >"$T/want"
tap 0 'come back as they were' diff "$T/want" "$T/got"
if [ -e bad ]; then not_ok 'nothing in a name runs'; else ok 'nothing in a name runs'; fi
{ sed '/^exec/d' "$T/script"; echo 'printf "%s\n" "$CUDA_HOME"'; } | bash >"$T/got"
printf '%s\n' "$odd" >"$T/want"
tap 0 'a pinned value too' diff "$T/want" "$T/got"

# dataset names never enter
i=0; : >many.txt
while [ $i -lt 2500 ]; do echo "scans/a" >>many.txt; i=$((i + 1)); done
printf 'scans/\044(touch bad)\n' >>many.txt; echo x >'scans/$(touch bad)'
CUDA=
tap 0 'many datasets' bare recon-submit --dry-run --datasets many.txt -- cat {dataset}
has "$T/out" '#SBATCH --array=0-833' 'are shared among at most 1000 tasks where no cluster is asked'
lacks "$T/out" 'touch bad' 'their names do not enter the script'
tap 0 'datasets_per_task is kept' bare recon-submit --dry-run --set datasets_per_task=2 --datasets many.txt -- cat {dataset}
has "$T/out" '#SBATCH --array=0-999' 'a full first part'
has "$T/err" 'the first of 2 submissions' 'and the next'

# templates
mkdir templates
{ sed -n 1p "$abs_top_srcdir/templates/default.sbatch"; echo '#SBATCH --account=site'; sed 1d "$abs_top_srcdir/templates/default.sbatch"; } >templates/default.sbatch
tap 0 "the project's template" bare recon-submit --dry-run --datasets list.txt -- cat {dataset}
has "$T/out" '#SBATCH --account=site' 'is taken'
mkdir -p home/.config/recon/templates
sed 's/--account=site/--account=user/' templates/default.sbatch >home/.config/recon/templates/default.sbatch
sed 's/--account=site/--account=mine/' templates/default.sbatch >home/.config/recon/templates/own.sbatch
tap 0 "the project's before the user's" bare env HOME="$T/w/home" recon-submit --dry-run --datasets list.txt -- cat {dataset}
has "$T/out" '#SBATCH --account=site' 'is taken'
tap 0 "the user's, where the project has none of the name" bare env HOME="$T/w/home" recon-submit --dry-run --set template=own --datasets list.txt -- cat {dataset}
has "$T/out" '#SBATCH --account=mine' 'is taken'
mkdir elsewhere && cp list.txt elsewhere
(cd elsewhere && tap 0 x bare env HOME="$T/w/home" recon-submit --dry-run --datasets list.txt -- cat {dataset} >/dev/null)
has "$T/out" '#SBATCH --account=user' "the user's before the shipped one"
sed 's/@LAUNCH@/@LUNCH@/' templates/default.sbatch >templates/bad.sbatch
tap 64 'an unknown placeholder' bare recon-submit --dry-run --set template=bad --datasets list.txt -- cat {dataset}
has "$T/err" "bad.sbatch:9: unknown placeholder '@LUNCH@'" 'is refused with file and line'
one_line "$T/err" 'in one line'
chmod 666 templates/default.sbatch
tap 77 'a template that others may write' bare recon-submit --dry-run --datasets list.txt -- cat {dataset}
has "$T/err" 'is writable by others' 'is refused'
finish

#!/bin/sh
# Failures that clusters know, through the real programs: recon-check, recon-pin and recon-launch on small inputs made here.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/finds.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES CONDA_PREFIX VIRTUAL_ENV
# env_is NAME=VALUE...: the environment file of the next recon-check
env_is() { printf '%s\n' "$@" >"$T/job.env"; }
program "$T/app" 'int main(void){return 7;}'

# ---- works in the shell, dies in the job
mkdir -p "$T/opt/cuda-11.8/lib64" "$T/opt/cuda-12.4/lib64" "$T/opt/cuda-12.8/lib64"
CUDA_HOME=$T/opt/cuda-11.8 LD_LIBRARY_PATH=$T/opt/cuda-11.8/lib64 tap 0 'a pin' recon-pin capture -o "$T/env.pin" "$T/app"
launch=$(command -v recon-launch)
env -i SLURM_JOB_ID=4242 SLURM_STEP_ID=0 SLURM_PROCID=0 DATASET=/data/office "$launch" --pin "$T/env.pin" -- "$T/app" \
    >"$T/out" 2>"$T/err"; rc=$?
if [ $rc = 7 ]; then ok 'a bare step: the launcher works without PATH and HOME, the program runs'
else not_ok 'a bare step: the launcher works without PATH and HOME, the program runs' "$rc" "$(cat "$T/err")"; fi
found env-not-exported
has "$T/err" 'of this Slurm step; restored from the pin' 'it says so'
has "$T/err" '--export=ALL' 'and what to write instead'
rmdir "$T/opt/cuda-11.8/lib64" "$T/opt/cuda-11.8"
CUDA_HOME=$T/opt/cuda-11.8 LD_LIBRARY_PATH=$T/opt/cuda-11.8/lib64 \
    tap 75 'a pinned toolkit that this node has not' recon-launch --pin "$T/env.pin" -- "$T/app"
found cuda-home-missing
has "$T/err" "$T/opt/cuda-12.4, $T/opt/cuda-12.8" 'those that are here'

mkdir -p "$T/envs/gs/bin"
CONDA_PREFIX=$T/envs/gs PATH=$T/envs/gs/bin:$PATH tap 0 'a pin of a prefix' recon-pin capture -o "$T/conda.pin" "$T/app"
env_is PATH=/usr/bin:/bin
tap 78 'and a shell in which it is not active' recon-check --skip env-not-exported --skip env-drift --pin "$T/conda.pin" \
    --env-file "$T/job.env"
found env-prefix-missing
env_is PATH=/usr/bin:/bin "CONDA_PREFIX=$T/envs/gs"
tap 0 'a prefix that is half active' recon-check --env-file "$T/job.env" "$T/app"
found env-half-active

for v in MIG-377e0049-554c-540b-93c6-000000000001 MIG-GPU-8932f937-d72c-4106-c12f-000000000002/1/0; do
    env_is "CUDA_VISIBLE_DEVICES=$v"
    tap 75 "$v" recon-check --assume gpu=none --env-file "$T/job.env" "$T/app"
    found device-not-visible
    has "$T/out" "'$v'" 'quotes the value'
done
env_is CUDA_VISIBLE_DEVICES=MIG-377e0049-554c-540b-93c6-000000000001
printf 'gpus = ( { vendor = "nvidia"; uuid = "GPU-1"; compute_capability = "9.0"; %s } );\n' \
    'mig = "MIG-377e0049-554c-540b-93c6-000000000001"; memory_mib = 10240;' >"$T/mig"
tap 0 'and where the instance is' recon-check --assume "$T/mig" --env-file "$T/job.env" "$T/app"
lacks "$T/out" 'error:' 'nothing is said'

hard=$(ulimit -H -l)
if [ "$hard" != unlimited ] && [ "$hard" -le 64 ]; then skip 'locked memory is limited here'; else
    ( ulimit -S -l 64; tap 0 'a soft limit of 64 KiB' recon-check "$T/app" )
    n=$((n + 1)); ( ulimit -S -l 64; recon-check "$T/app" >"$T/out" )
    found memlock-low
    has "$T/out" 'ulimit -l unlimited' 'the script can lift it'
    ( ulimit -l 64; recon-check "$T/app" >"$T/out" )
    has "$T/out" 'LimitMEMLOCK=infinity' 'a hard one only the administrator'
fi

lib "$T/cwd/in/libgeo.so.1" libgeo.so.1 'int f(void){return 13;}'
lib "$T/cwd/good/libgeo.so.1" libgeo.so.1 'int f(void){return 42;}'
program "$T/cwd/app" 'int f(void);int main(void){return f();}' "$T/cwd/good/libgeo.so.1" '-Wl,-rpath,$ORIGIN/good'
env_is LD_LIBRARY_PATH=/opt/none:
( cd "$T/cwd/in" && recon-check --env-file "$T/job.env" ../app ) >"$T/out" 2>"$T/err"
found ldpath-cwd
has "$T/out" "from there comes '$T/cwd/in/libgeo.so.1'" 'and what comes from there'

# ---- driver and loader
lib "$T/cuda/lib64/stubs/libcuda.so.1" libcuda.so.1 'int cuInit(unsigned f){(void)f;return 34;}'
lib "$T/drv/libcuda.so.1" libcuda.so.1 'int cuInit(unsigned f){(void)f;return 0;}'
program "$T/linked" 'int cuInit(unsigned);int main(void){return cuInit(0);}' "$T/drv/libcuda.so.1"
fatbin "$T/f.s" '2 90'
program "$T/dlopens" 'int main(void){return 0;}' "$T/f.s"
env_is "LD_LIBRARY_PATH=$T/cuda/lib64/stubs:$T/drv"
for p in linked dlopens; do
    tap 78 "a stub of libcuda first, $p" recon-check --assume gpu=9.0 --assume driver.cuda=12.8 --env-file "$T/job.env" "$T/$p"
    found libcuda-stub
    has "$T/out" "the driver's own is '$T/drv/libcuda.so.1'" 'and the real one'
done
mv "$T/drv/libcuda.so.1" "$T/drv/libcuda.so.550.54.14"; ln -s libcuda.so.550.54.14 "$T/drv/libcuda.so.1"
env_is "LD_LIBRARY_PATH=$T/drv"
printf 'driver = { kernel_module = "570.211.01"; library = "570.211.01"; source = "nvml"; }; gpus = ( %s );\n' \
    '{ vendor = "nvidia"; compute_capability = "9.0"; }' >"$T/node"
tap 75 'a copied libcuda of another release' recon-check --assume "$T/node" --env-file "$T/job.env" "$T/dlopens"
found libcuda-kernel-mismatch
mkdir -p "$T/compat"; cp "$T/drv/libcuda.so.1" "$T/compat/libcuda.so.580.65.06"; ln -s libcuda.so.580.65.06 "$T/compat/libcuda.so.1"
env_is "LD_LIBRARY_PATH=$T/compat"
tap 0 'a compat folder' recon-check --assume "$T/node" --env-file "$T/job.env" "$T/dlopens"
has "$T/out" 'warn: libcuda-kernel-mismatch' 'is a warning'

printf 'libcudart.so.11.0 { global: *; };\n' >"$T/11.map"; printf 'libcudart.so.12 { global: *; };\n' >"$T/12.map"
lib "$T/good/libcudart.so.11.0" libcudart.so.11.0 'int f(void){return 42;}' "-Wl,--version-script,$T/11.map"
lib "$T/bad/libcudart.so.12.4.99" libcudart.so.12 'int f(void){return 42;}' "-Wl,--version-script,$T/12.map"
ln -s libcudart.so.12.4.99 "$T/bad/libcudart.so.11.0"
program "$T/hijacked" 'int f(void);int main(void){return f()==42?0:3;}' "$T/good/libcudart.so.11.0"
env_is "LD_LIBRARY_PATH=$T/bad"
recon-check --env-file "$T/job.env" "$T/hijacked" >"$T/out" 2>"$T/err"
has "$T/out" "error: soname-mismatch: $T/bad/libcudart.so.11.0" 'a link to another release: soname-mismatch'
has "$T/out" "error: symver-missing: $T/bad/libcudart.so.11.0" 'and symver-missing'

mkfifo "$T/fifo.so.1"
lib "$T/fifo-good/fifo.so.1" fifo.so.1 'int f(void){return 0;}'
program "$T/fifo-app" 'int f(void);int main(void){return f();}' "$T/fifo-good/fifo.so.1"
env_is "LD_LIBRARY_PATH=$T"
tap 75 'a FIFO with the name of a library' timeout 20 recon-check --env-file "$T/job.env" "$T/fifo-app"
found not-a-regular-file

lib "$T/lib32/libgs.so.1" libgs.so.1 'int f(void){return 0;}'
lib "$T/lib64/libgs.so.1" libgs.so.1 'int f(void){return 0;}'
printf '\001' | dd of="$T/lib32/libgs.so.1" bs=1 seek=4 conv=notrunc 2>/dev/null
program "$T/class" 'int f(void);int main(void){return f();}' "$T/lib64/libgs.so.1"
env_is "LD_LIBRARY_PATH=$T/lib32"
tap 78 'a 32-bit library alone' recon-check --env-file "$T/job.env" "$T/class"
found lib-wrong-class

env_is LD_PRELOAD=/opt/site/xalt/lib64/libxalt_init.so
tap 0 'a preload of the login node' recon-check --env-file "$T/job.env" "$T/app"
found preload-missing

# ---- a script that activates an environment without its init
printf '#!/bin/bash\n#SBATCH --time=10\nconda activate gs\nexit 5\n' >"$T/user.sh"; chmod +x "$T/user.sh"
tap 78 'conda activate in a batch script' recon-check "$T/user.sh"
found shell-init-missing
has "$T/out" 'line 3: `conda activate gs` has no init in a batch shell; errors are not fatal there' 'both faults are said'
( unset SLURM_CONF; echo x >"$T/list.txt"; tap 78 'submitted' recon-submit --dry-run --set submit.via=nobody --datasets "$T/list.txt" --wrap-script "$T/user.sh"
  has "$T/err" 'not submitted: shell-init-missing' 'it is refused' )
n=$((n + 2))
tap 78 'started by the launcher' recon-launch --pin "$T/env.pin" --skip cuda-home-missing -- "$T/user.sh"
has "$T/err" 'error: shell-init-missing' 'it is refused, too'
tap 78 'as by its shell' recon-launch --pin "$T/env.pin" --skip cuda-home-missing -- /bin/bash -f "$T/user.sh"

# ---- the site's levels
printf 'rules = { shell-init-missing = "warn"; lib-chnged = "note"; uvm-missing = "high"; };\n' >"$T/rules.conf"
export RECON_RULES="$T/rules.conf"
tap 0 'an error that the site made a warning' recon-check "$T/user.sh"
found shell-init-missing
has "$T/err" "rules.conf:1: no rule is named 'lib-chnged', the nearest is 'lib-changed'" 'an unknown rule is told'
has "$T/err" "the level of 'uvm-missing' is 'high', wanted off, note, warn or error" 'and an unknown level'
recon-check --list-rules >"$T/out" 2>/dev/null
has "$T/out" 'shell-init-missing       warn (site)' '--list-rules shows it'
tap 5 'the launcher starts it' recon-launch -v --pin "$T/env.pin" --skip cuda-home-missing -- "$T/user.sh"
has "$T/err" "note: check-override: RECON_RULES: levels of rules are those of '$T/rules.conf'" 'and says by whose word'
printf 'rules = { shell-init-missing = "off"; };\n' >"$T/rules.conf"
tap 0 'off' recon-check "$T/user.sh"
lacks "$T/out" 'shell-init-missing' 'is silent'
chmod o+w "$T/rules.conf"; tap 78 'writable by others' recon-check "$T/user.sh"
has "$T/err" 'is writable by others' 'is told and not believed'
unset RECON_RULES

# ---- what changed since the capture
lib "$T/own/libown.so.1" libown.so.1 'int f(void){return 1;}'
program "$T/own/app" 'int f(void);int main(void){return f()-1;}' "$T/own/libown.so.1" '-Wl,-rpath,$ORIGIN'
tap 0 'a pin of a library' recon-pin capture -o "$T/own.pin" "$T/own/app"
tap 0 'unchanged' recon-check --pin "$T/own.pin"
lacks "$T/out" 'warn:' 'nothing is said'
sleep 0.02; lib "$T/own/libown.so.1" libown.so.1 'int f(void){return 1;} int g(void){return 2;}'
tap 0 'built anew' recon-check --pin "$T/own.pin"
found lib-changed

# the launcher looks symbols up where a library is another build than pinned, and nowhere else
lib "$T/sym/good/libsym.so.1" libsym.so.1 'int old(void){return 0;} int data_word = 3;'
lib "$T/sym/new/libsym.so.1" libsym.so.1 'int old(void){return 1;} int data_word_2 = 3;'
lib "$T/sym/later/libsym.so.1" libsym.so.1 'int young(void){return 1;} int data_word = 3;'
lib "$T/sym/good/libother.so.1" libother.so.1 'int f(void){return 0;}'
program "$T/sym/app" 'extern int data_word; int old(void); int f(void); int main(int c, char **v){(void)v; return c > 9 ? old() + f() : data_word - 3;}' \
    "$T/sym/good/libsym.so.1" "$T/sym/good/libother.so.1" '-Wl,--allow-shlib-undefined' '-Wl,-rpath,$ORIGIN/use' '-Wl,-z,lazy'
cp -r "$T/sym/good" "$T/sym/use"
tap 0 'a pin of two libraries' recon-pin capture -o "$T/sym.pin" "$T/sym/app"
tap 0 'unchanged it starts' recon-launch --pin "$T/sym.pin" -- "$T/sym/app"
lacks "$T/err" 'warn:' 'without a word'
: >"$T/sym/use/new-file"
tap 0 'searched again, nothing changed: no word' recon-launch --pin "$T/sym.pin" -- "$T/sym/app"
lacks "$T/err" 'warn:' 'without a word'
cp "$T/sym/new/libsym.so.1" "$T/sym/use/libsym.so.1"
tap 78 'another build that lacks a variable' recon-launch --pin "$T/sym.pin" -- "$T/sym/app"
found symbol-missing lib-changed
has "$T/err" "'$T/sym/app' needs 'data_word'" 'named'
cp "$T/sym/later/libsym.so.1" "$T/sym/use/libsym.so.1"
tap 0 'another build that lacks a function of the first call' recon-launch --pin "$T/sym.pin" -- "$T/sym/app"
found symbol-missing lib-changed
has "$T/err" 'dies when it is first called' 'is a warning'
LD_BIND_NOW=1 tap 78 'but an error where all is bound at the start' recon-launch --pin "$T/sym.pin" -- "$T/sym/app"

# ---- a source tree beside the script hides the package
site=$T/prefix/lib/python3.11/site-packages
lib "$site/gsplat/csrc.so" csrc.so 'int f(void){return 0;}'
: >"$site/gsplat/__init__.py"
tap 0 'a pin of a package' recon-pin capture -o "$T/py.pin" "$T/app" "$site/gsplat/csrc.so"
tap 0 'where nothing hides it' recon-check --pin "$T/py.pin"
lacks "$T/out" 'module-shadowed' 'nothing is said'
mkdir -p "$T/src/gsplat" "$T/data/gsplat"; : >"$T/src/gsplat/__init__.py"
( cd "$T/src" && recon-check --pin "$T/py.pin" ) >"$T/out" 2>"$T/err"
found module-shadowed
has "$T/out" "warn: module-shadowed: $T/src/gsplat/__init__.py: is what \`import gsplat\` finds" 'names both'
( cd "$T/data" && PYTHONPATH=$site recon-check --skip env-drift --pin "$T/py.pin" ) >"$T/out" 2>"$T/err"
lacks "$T/out" 'module-shadowed' 'a folder of data hides nothing'

# ---- healthy programs of this host: nothing is said
for p in /usr/bin/* /usr/sbin/*; do
    case $(head -c 4 "$p" 2>/dev/null | tail -c 3) in ELF) echo "$p";; esac
done | awk 'NR % 7 == 1' | head -60 >"$T/programs"
# shellcheck disable=SC2046
tap 0 "$(wc -l <"$T/programs") programs of this host" recon-check $(cat "$T/programs")
lacks "$T/out" 'error:' 'no error'
lacks "$T/out" 'warn:' 'no warning'

# ---- a folder that cannot be used
mkdir "$T/ro"
TMPDIR=$T/gone tap 0 'TMPDIR of the login node' recon-check "$T/app"
found tmpdir-unusable
finish

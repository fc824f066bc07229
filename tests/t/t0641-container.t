#!/bin/bash
# Tasks in a container: the command line for each runtime, the image's digest, the node's facts passed in, libraries resolved
# inside. No runtime is to be had here: tests/fakes/apptainer changes the root.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
cd "$T" || exit 99
unset ${!SLURM_*} ${!SBATCH_*} ${!RECON_*} LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT
export HOME=$T
printf 'one\ntwo\n' >list.txt
dry() { recon-submit --dry-run --set submit.via=nobody --run-dir "$T/run" "$@" --datasets list.txt -- "$T/app/prog" '{dataset}'; }
launch=$(command -v recon-launch)
here=$(dirname "$(dirname "$launch")")
binds="$T/run,$T,$here/bin/recon-launch,$here/bin/recon-run,$here/lib/recon,$here/libexec/recon,$here/share/recon"

# command lines
echo content >image.sif
tap 0 'apptainer' dry --set 'container={ kind="apptainer"; image="image.sif"; bind=["/scratch"]; options=["--cleanenv"]; }'
grep '^exec' "$T/out" >line
has line "exec '$launch' --save-facts '$T/run'/facts -- 'apptainer' 'exec' '--nv' '--bind' '$binds,/scratch' '--cleanenv' '$T/image.sif' '$launch' --pin" \
    'the container wraps the launcher'
tap 0 'pyxis' dry --set 'container={ kind="pyxis"; image="nvcr.io#nvidia/cuda:12.4@sha256:00"; bind=["/data:/in"]; }'
grep '^exec' "$T/out" >line
has line "-- 'srun' '--container-image=nvcr.io#nvidia/cuda:12.4@sha256:00' '--container-mounts=$T/run:$T/run,$T:$T," 'srun with its options'
has line ",/data:/in' '$launch' --pin" 'and the folders asked for'
lacks "$T/err" 'names no digest' 'a reference with its digest is pinned'
tap 0 'a reference without' dry --set 'container={ kind="apptainer"; image="docker://ubuntu:24.04"; }'
has "$T/err" "image 'docker://ubuntu:24.04' names no digest" 'is told'
tap 64 'no image' dry --set 'container={ kind="apptainer"; }'
tap 64 'an image that is not there' dry --set 'container={ kind="apptainer"; image="/not/there.sif"; }'
one_line "$T/err" 'in one line'
tap 64 'a digest of another image' dry --set "container={ kind=\"apptainer\"; image=\"image.sif\"; digest=\"sha256:$(printf %064d 0)\"; }"
has "$T/err" "is sha256:$(sha256sum <image.sif | cut -d' ' -f1), pinned was sha256:0000" 'is refused with both'

# host facts
fatbin "$T/f.s" '2 90;1 90 8 4'
lib "$T/cuda/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
program "$T/gpu" 'int f(void);int main(void){return f();}' "$T/f.s" "$T/cuda/libcudart.so.12" '-Wl,-rpath,$ORIGIN/cuda'
recon-pin capture -o "$T/gpu.pin" "$T/gpu" 2>/dev/null
printf 'version = 1; node = "outside"; gpus_known = true; gpus = ( { vendor = "nvidia"; name = "A100"; compute_capability = "8.0"; } );\n' >a100.facts
tap 75 "the node's GPUs as saved outside" recon-launch --facts a100.facts --pin gpu.pin --check-only -- ./gpu
has "$T/out" "arch-no-image" 'are what the code is held against'
tap 0 'saved' recon-launch --save-facts facts -- sh -c 'echo "$RECON_HOST_FACTS"'
tap 0 'as a whole file, named to the program' recon-check --facts "$(cat "$T/out")" --pin gpu.pin --skip arch-no-image

# inside
[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { skip 'needs root for a change of root'; finish; }
fake=$abs_top_srcdir/tests/fakes/apptainer
mkdir -p app root/lib64 root/etc root/tmp
lib "$T/app/libdemo.so.1" libdemo.so.1 'int demo(void){return 0;}'
program "$T/app/prog" 'int demo(void);int printf(const char *,...);int main(int c,char**v){void*f=0;extern void*fopen(const char*,const char*);f=fopen("/etc/image","r");printf("%s %s\n",v[1],f?"inside":"outside");return demo();}' \
    "$T/app/libdemo.so.1" '-Wl,-rpath,$ORIGIN' || skip_all 'no C compiler'
for f in $(ldd app/prog | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p' | grep -v "^$T"); do
    mkdir -p "root$(dirname "$f")"; cp -L "$f" "root$f"
done
echo made >root/etc/image
recon-pin capture -o "$T/env.pin" "$T/app/prog" 2>/dev/null
mkdir w; cp list.txt w/; echo "$T/root" >w/image.sif; cd w || exit 99
job() { # job RUN OPTION...: the image has the program, in a folder that is not bound
    recon-submit --local --run-dir "$1" --set pin="$T/env.pin" \
        --set "container={ kind=\"apptainer\"; image=\"image.sif\"; command=[\"$fake\"]; }" "${@:2}" --datasets list.txt -- "$T/app/prog" '{dataset}'
}
mkdir -p "$T/root$T/app"; cp "$T/app/prog" "$T/root$T/app/"
export FAKE_CALLS=$T/calls
tap 75 'an image without a library that the host has' job lost
cat lost/events/0/0/*.jsonl >events
has events '"rule":"lib-not-found"' 'is found wanting: libraries are resolved inside'
cp "$T/app/libdemo.so.1" "$T/root$T/app/"
tap 0 'an image with it' job good
cat good/logs/* >logs
has logs 'one inside' 'the program runs inside'
has "$T/calls" 'exec --nv --bind' 'by the runtime'
node=$(hostname)
has "good/facts/$node.facts" "node = \"$node\"" "the node's facts were saved outside"
has good/job.conf "sha256:$(sha256sum <image.sif | cut -d' ' -f1)" "the image's digest stands in the run"
rm -r good/out/0/0
tap 0 'resume with the same image' recon-submit --local --resume good
echo ' ' >>image.sif; rm -r good/out/0/0
tap 64 'with another' recon-submit --local --resume good
has "$T/err" 'pinned was sha256:' 'is refused'
tap 0 "a site's own command" recon-submit --local --run-dir site --set pin="$T/env.pin" \
    --set "container={ kind=\"command\"; image=\"$T/root\"; command=[\"$fake\", \"exec\", \"--bind\", \"{binds}\", \"{image}\"]; }" --datasets list.txt -- "$T/app/prog" '{dataset}'
has "$T/err" 'is no file, and its content is not pinned' 'a folder is told'
echo "$T/root" >image.sif
tap 0 'a program that the pin does not hold' recon-submit --local --run-dir nopin \
    --set "container={ kind=\"apptainer\"; image=\"image.sif\"; command=[\"$fake\"]; }" --datasets list.txt -- "$T/app/prog" '{dataset}'
finish

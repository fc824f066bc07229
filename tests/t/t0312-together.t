#!/bin/sh
# Several faults at once: each root cause is told once, what to fix first stands first, and the node's errors settle the status.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
. "$abs_top_srcdir/tests/finds.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES CONDA_PREFIX VIRTUAL_ENV RECON_RULES
facts=$abs_top_srcdir/tests/fixtures/facts
fatbin "$T/f.s" '2 90'
lib "$T/good/libcudart.so.12" libcudart.so.12 'int f(void){return 0;}'
lib "$T/good/libgone.so.1" libgone.so.1 'int g(void){return 0;}'
lib "$T/good/libuses.so.1" libuses.so.1 'int g(void);int u(void){return g();}' "$T/good/libgone.so.1"
program "$T/app" 'int f(void);int u(void);int g(void);int main(void){return f()+u()+g();}' "$T/f.s" "$T/good/libcudart.so.12" "$T/good/libuses.so.1" \
    "$T/good/libgone.so.1" "-Wl,-rpath-link,$T/good"
mkdir -p "$T/cuda-11.8/lib64" "$T/cuda-12.4/lib64"
CUDA_HOME=$T/cuda-11.8 LD_LIBRARY_PATH=$T/good tap 0 'a pin' recon-pin capture -o "$T/p.pin" "$T/app"

# the toolkit is gone, a library is gone that two others need, another is a directory, the driver is old for it, the GPU is another
rm -r "$T/cuda-11.8" "$T/good/libgone.so.1" "$T/good/libcudart.so.12"; mkdir "$T/good/libcudart.so.12"
export LD_LIBRARY_PATH="$T/good" CUDA_HOME="$T/cuda-11.8"
tap 75 'four faults, and a driver that is too old for the library that is gone' recon-check --pin "$T/p.pin" --assume gpu=8.0 --assume driver.kernel_module=470.82.01 --skip memlock-low
order=$(sed -n 's/^error: \([a-z-]*\): .*/\1/p' "$T/out" | tr '\n' ' ')
if [ "$order" = 'cuda-home-missing lib-corrupt lib-not-found arch-no-image ' ]; then ok 'each once, causes first'
else not_ok 'each once, causes first' "$order" "$(cat "$T/out")"; fi
lacks "$T/out" 'lib-changed' 'what is lost is not told as changed'
lacks "$T/out" 'symbol-missing' 'nor what it would have had'
has "$T/out" "libgone.so.1" 'the lost library is named'
launch=$(recon-launch --pin "$T/p.pin" -- "$T/app" 2>&1 | sed -n 's/^error: \([a-z-]*\): .*/\1/p' | tr '\n' ' ')
case $launch in 'cuda-home-missing lib-corrupt lib-not-found '*) ok 'the launcher says the same' ;; *) not_ok 'the launcher says the same' "$launch" ;; esac

# an older node without the GPU's vendor: the C library first, then what it makes no difference to
tap 75 'another node' recon-check --pin "$T/p.pin" --facts "$facts/centos7-k40.facts"
first=$(sed -n 's/^error: \([a-z-]*\): .*/\1/p' "$T/out" | sort | uniq -d)
if [ -z "$first" ]; then ok 'no rule says two things of one cause'; else not_ok 'no rule says two things of one cause' "$(cat "$T/out")"; fi
finish

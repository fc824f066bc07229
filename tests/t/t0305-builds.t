#!/bin/sh
# recon-check without a node: toolkits against architectures and host compilers, what to compile for, where a program runs.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
unset LD_LIBRARY_PATH LD_PRELOAD CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES CONDA_PREFIX VIRTUAL_ENV
. "$abs_top_srcdir/tests/finds.sh"
facts=$abs_top_srcdir/tests/fixtures/facts

# ---- toolkits, by version and by folder, as old and new ones tell it
mkdir -p "$T/cuda-11.0/bin" "$T/cuda-11.1/bin" "$T/cuda-12/include" "$T/none"
echo '{ "cuda": { "name": "CUDA SDK", "version": "11.0.221" } }' >"$T/cuda-11.0/version.json"
echo 'CUDA Version 11.1.105' >"$T/cuda-11.1/version.txt"
echo '#define CUDA_VERSION 12040' >"$T/cuda-12/include/cuda.h"
tap 78 '11.0 for 8.6' recon-check --toolkit 11.0 --arch 8.6
found toolkit-too-old
has "$T/out" 'CUDA 11.0 cannot compile for sm_86, which needs CUDA 11.1 or newer' 'both, and what is needed'
tap 0 '11.1 for 8.6' recon-check --toolkit 11.1 --arch 8.6
tap 78 'version.json' recon-check --toolkit "$T/cuda-11.0" --arch sm_86
found toolkit-too-old toolkit-incomplete
tap 0 'version.txt' recon-check --toolkit "$T/cuda-11.1" --arch compute_86
tap 78 '9.0 needs 11.8' recon-check --toolkit "$T/cuda-11.1" --arch 9.0
has "$T/out" 'needs CUDA 11.8' 'says so'
tap 0 'cuda.h' recon-check --skip toolkit-incomplete --toolkit "$T/cuda-12" --arch '8.0;8.6;9.0a+PTX'
tap 78 'an architecture that was dropped' recon-check --toolkit 13.0 --arch 7.0
has "$T/out" 'no longer compiles for sm_70' 'says so'
tap 78 'a compiler that is too new' recon-check --toolkit 12.1 --arch 8.6 --host-compiler gcc-13
found host-compiler-too-new
tap 78 'one that is too old' recon-check --toolkit 12.1 --arch 8.6 --host-compiler /usr/bin/g++-5
found host-compiler-too-old
tap 0 'one that fits' recon-check --toolkit 12.4 --arch 8.6 --host-compiler g++-13.2
tap 78 'for the GPUs of saved facts' recon-check --toolkit 11.4 --facts "$facts/h200.facts"
has "$T/out" 'cannot compile for sm_90' 'by their compute capability'
tap 0 'as JSON' recon-check --toolkit 12.8 --arch 9.0 --format jsonl
has "$T/out" '"status":"ok"' 'a summary'
for bad in 'x --arch 8.6' '12.4 --arch H100' '12.4 --host-compiler clang-15' "$T/none --arch 9.0"; do
    # shellcheck disable=SC2086
    tap 64 "refused: --toolkit $bad" recon-check --toolkit $bad
    one_line "$T/err" 'one line'
done
tap 64 '--arch alone' recon-check --arch 8.6

# ---- what to compile for
tap 0 'for one node' recon-check --arch-list --facts "$facts/h200.facts"
has "$T/out" "TORCH_CUDA_ARCH_LIST='9.0+PTX'" 'for PyTorch'
has "$T/out" "NVCC_GENCODE='-gencode arch=compute_90,code=[sm_90,compute_90]'" 'for nvcc'
has "$T/err" 'CUDA 11.8 or newer' 'and by which toolkits'
tap 0 'for two types' recon-check --arch-list --assume gpu=8.0,9.0,8.0
has "$T/out" "CMAKE_CUDA_ARCHITECTURES='80-real;90'" 'each once'
tap 0 'for types that no toolkit has together' recon-check --arch-list --assume gpu=3.5,12.0
has "$T/err" 'no one toolkit compiles for all' 'says so'
tap 64 'no GPU' recon-check --arch-list --assume gpu=none

# ---- where
mkdir -p "$T/facts/h200" "$T/facts/old"
cp "$facts/h200.facts" "$T/facts/h200/vm.facts"
sed 's/^node = .*/node = "vm2";/' "$facts/h200.facts" >"$T/facts/h200/vm2.facts"
cp "$facts/centos7-k40.facts" "$T/facts/old/k40.facts"
fatbin "$T/f.s" '2 90'
program "$T/sm90" 'int main(void){return 0;}' "$T/f.s"
tap 0 'some node will do' recon-check --facts "$T/facts" --where "$T/sm90"
has "$T/out" 'h200       1 x NVIDIA H200 (9.0)  vm and 1 more  ok' 'nodes of one verdict together'
has "$T/out" 'old        1 x Tesla K40m (3.5)   k40-03         error    glibc-too-old' 'and why another will not'
fatbin "$T/f.s" '2 100'
program "$T/sm100" 'int main(void){return 0;}' "$T/f.s"
tap 78 'no node will do' recon-check --facts "$T/facts" --where --format jsonl "$T/sm100"
has "$T/out" '{"v":1,"type":"where","partition":"h200","gpu":"1 x NVIDIA H200 (9.0)","status":"error","rule":"arch-no-image"' 'JSON'
has "$T/out" '"nodes":["vm","vm2"]}' 'nodes'
tap 64 '--where without facts' recon-check --where "$T/sm90"
tap 127 'a folder without facts' recon-check --facts "$T/none" --where "$T/sm90"
has "$T/err" "holds no NODE.facts" 'is told'
echo 'version = 2;' >"$T/facts/bad.facts"
tap 65 'facts that cannot be read' recon-check --facts "$T/facts" --where "$T/sm90"
SLURM_JOB_PARTITION=gpu recon-check --save-facts "$T/here.facts"
has "$T/here.facts" 'partitions = [ "gpu" ];' 'facts saved in a job know its partition'

# tools of the build against what the source asks for
mkdir -p "$T/src"
printf '# cmake_minimum_required(VERSION 9)\nproject(x)\nCMAKE_minimum_required(VERSION 3.18...3.29 FATAL_ERROR)\n' >"$T/src/CMakeLists.txt"
tap 78 'a CMake that is too old' recon-check --source "$T/src" --tool cmake-3.16.3
has "$T/out" "error: tool-too-old: cmake: cmake 3.16.3 is older than 3.18, which '$T/src/CMakeLists.txt' needs" 'is told'
tap 0 'one that will do' recon-check --source "$T/src" --tool cmake-3.28.1
tap 78 'with a toolkit' recon-check --toolkit 12.4 --arch 9.0 --host-compiler gcc-5 --source "$T/src" --tool cmake-3.4
has "$T/out" 'host-compiler-too-old' 'both are told'; has "$T/out" 'tool-too-old' 'each once'
tap 127 'no such source' recon-check --source "$T/none" --tool cmake-3.4
tap 64 'no release' recon-check --source "$T/src" --tool cmake
tap 64 'no source' recon-check --tool cmake-3.16
finish

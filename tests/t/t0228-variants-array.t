#!/bin/sh
# examples/variants: an array over GPU types builds the same kernels for each, and one pin has all of them; a node takes what fits.
. "${abs_top_srcdir:?}/tests/lib.sh"
NVCC=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$NVCC" ] || skip_all 'wants nvcc'
export NVCC
unset LD_LIBRARY_PATH LD_PRELOAD RECON_PIN RECON_CHECK
cp -r "$abs_top_srcdir/examples/variants" "$T/v" && chmod -R u+w "$T/v" && cd "$T/v" || exit 99

tap 0 'an array over GPU types' recon-submit --local --run-dir builds --datasets gpus.tsv -- ./build '{arch}' '{out}'
tap 0 'one pin of what it built' ./pin builds kernels.pin
for pair in 8.0:a100 8.6:a100 9.0:h100 10.0:b200; do
    tap 0 "a GPU of ${pair%:*}" recon-check -v --pin kernels.pin --assume "gpu=${pair%:*}" --assume driver.kernel_module=580.95.05
    has "$T/out" "'${pair#*:}'" "takes ${pair#*:}"
done
tap 75 'a GPU that none was built for' recon-check --pin kernels.pin --assume gpu=12.0 --assume driver.kernel_module=580.95.05
has "$T/out" arch-no-image 'with the reason'
finish

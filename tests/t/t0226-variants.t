#!/bin/sh
# A pin with variants: whole bodies, of which a node takes the most specific that has no error there, and tells it.
. "${abs_top_srcdir:?}/tests/lib.sh"
CC=${CC:-gcc}
echo 'int x;' | $CC -shared -fPIC -xc - -o "$T/probe.so" 2>/dev/null || skip_all 'wants a C compiler'
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD SAYS RECON_PIN RECON_CHECK VIRTUAL_ENV CONDA_PREFIX
cd "$T" || exit 99
mkdir lib
echo 'int v(void) { return 0; }' | $CC -shared -fPIC -Wl,-soname,libfast.so.1 -xc - -o lib/libfast.so.1
say='#include <stdio.h>
#include <stdlib.h>
int v(void); int main(int n, char **a) { const char *s = getenv("SAYS"); printf("%s %s %d\n", NAME, s ? s : "-", n); return v(); }'
for p in plain a80 a90; do
    printf '%s\n' "$say" >m.c
    if [ $p = plain ]; then echo 'int v(void) { return 0; }' >>m.c; $CC -DNAME="\"$p\"" m.c -o $p
    else $CC -DNAME="\"$p\"" m.c -o $p lib/libfast.so.1 -Wl,-rpath,"$T/lib"; fi
done
tap 0 'plain' recon-pin capture -o plain.pin ./plain
tap 0 'a80' env SAYS=eighty recon-pin capture -o a80.pin --env SAYS ./a80
tap 0 'a90' env SAYS=ninety recon-pin capture -o a90.pin --env SAYS ./a90
gpu() { sed -i "s|\(role = \"program\"; path = \"$T/$1\";\)|\1 gpu = ( { containers = 1; $2 } );|" $1.pin; }
gpu a80 'sass = [ "sm_80" ]; ptx = [ "compute_80" ]; ptx_isa = "7.0";'
gpu a90 'sass = [ "sm_90" ];'

tap 0 'merge' recon-pin merge -o all.pin plain=plain.pin a80=a80.pin a90=a90.pin
has all.pin 'name = "plain";' 'the first is the body itself'
has all.pin 'variants = (' 'the others are variants'
tap 0 'show' recon-pin show all.pin
has out "variant    plain (this one): $T/plain" 'lists them'
has out "variant    a90: $T/a90" 'by name'
tap 0 'show one' recon-pin show --variant a90 all.pin
has out "program    $T/a90" 'as a whole'
has out 'variable   SAYS=ninety' 'with its variables'
tap 0 'verify one' env SAYS=eighty recon-pin verify --variant a80 all.pin
tap 75 'verify another' env SAYS=eighty recon-pin verify --variant a90 all.pin
has out 'env-drift: SAYS' 'is held against its own'
tap 0 'export one' recon-pin export --variant a90 all.pin
has out "export SAYS='ninety'" 'its variables'
tap 64 'one that is not there' recon-pin show --variant a75 all.pin
has err "has no variant 'a75'; it has plain, a80, a90" 'those that are there'; one_line err 'one line'
tap 64 'a name twice' recon-pin merge -o no.pin a=plain.pin a=a80.pin
has err "two variants are called 'a'" 'is told'; one_line err 'one line'
tap 64 'no name' recon-pin merge -o no.pin plain.pin a80.pin
tap 1 'and nothing is written' test -e no.pin
tap 0 'a merged pin into another' recon-pin merge -o more.pin first=plain.pin all.pin
grep -c 'name = "\(plain\|a80\|a90\|first\)"' more.pin >count; has count 4 'keeps their names'
sed 's/name = "a90"/name = "a80"/' all.pin >twice.pin
tap 64 'a file with a name twice' recon-pin show twice.pin
has err "variant 'a80': there are two of this name" 'is refused'
sed 's|objects = ( *$|&|; s|path = "'"$T"'/a90"|path = "a90"|' all.pin >relative.pin
tap 64 'a damaged variant' recon-pin show relative.pin
has err "variant 'a90': objects[0]: path 'a90' is not absolute" 'is named'

# which one a node would take: GPUs that are assumed
takes() { # GPU VARIANT
    recon-check --pin all.pin --assume gpu="$1" --assume driver.kernel_module=580.65.06 --env-file env --format jsonl -v >out 2>err
    if grep -qF "\"rule\":\"variant\",\"level\":\"note\",\"scope\":\"node\",\"object\":\"$2\",\"text\":\"variant '$2' of 3 is taken" out
    then ok "GPU $1 takes $2"; else not_ok "GPU $1 takes $2" "$(head -c 3000 out)" "$(cat err)"; fi
}
env >env
# HIP code beside CUDA code: each vendor's GPUs take their own
cp all.pin cuda.pin
sed "s|\(role = \"program\"; path = \"$T/plain\";\)|\1 hip = [ \"gfx90a:xnack-\", \"gfx1030\" ];|" plain.pin >amd.pin
tap 0 'merge' recon-pin merge -o all.pin plain=plain.pin amd=amd.pin a90=a90.pin
takes 9.0 a90
takes gfx1030 amd
takes gfx90a amd
takes gfx906 plain
mv cuda.pin all.pin
takes 9.0 a90
takes 8.0 a80
takes 8.6 a80
takes 12.0 a80
takes 7.5 plain
mkdir nodes
for g in 9.0 8.6 7.5; do
    cat >nodes/n$g.facts <<F
version = 1; node = "n$g"; taken = "$(date -u +%Y-%m-%dT%H:%M:%SZ)"; os = { glibc = "2.99"; machine = "x86_64"; }; cpu = { isa = "x86-64-v4"; };
driver = { kernel_module = "580.65.06"; cuda = "13.0"; }; gpus = ( { vendor = "nvidia"; name = "G$g"; compute_capability = "$g"; } );
F
done
tap 0 '--where' recon-check --where --facts nodes --pin all.pin
has out "takes 'a90'" 'tells what n9.0 takes'; has out "takes 'a80'" 'n8.6'; has out "takes 'plain'" 'n7.5'

# the launcher, on this node: CPU code alone, so that what is stated decides
for p in plain a80 a90; do sed "s/gpu = ([^;]*;[^)]*); *//" $p.pin >c-$p.pin; done
sed -i 's/requires = {/requires = { cuda_runtime = "12.0";/' c-a80.pin
sed -i 's/requires = {/requires = { cuda_runtime = "13.0";/' c-a90.pin
tap 0 'without GPU code' recon-pin merge -o cpu.pin plain=c-plain.pin a80=c-a80.pin a90=c-a90.pin
tap 0 'the launcher' recon-launch --pin cpu.pin -- ./plain one two
has out 'a90 ninety 3' 'runs the program of the variant, with its variables and the arguments'
has err "variant 'a90' of 3 is taken: program '$T/a90'" 'and tells it'
mv a90 gone90
tap 0 'where that has an error' recon-launch --pin cpu.pin -- ./plain one two
has out 'a80 eighty 3' 'the next is taken'
has err "variant 'a90' is not taken: lib-not-found" 'and the reason is told'
mv lib/libfast.so.1 gone
tap 0 'without the library of both' recon-launch --pin cpu.pin -- ./plain
has out 'plain - 1' 'the plain one is left'
tap 0 'another program' recon-launch --pin cpu.pin -- /bin/echo hi
has out hi 'is not replaced'
mv plain goneplain
tap 75 'when all have errors' recon-launch --pin cpu.pin --check-only -v
has out "none is without error" 'that is said'
finish

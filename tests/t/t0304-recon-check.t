#!/bin/sh
# The command line of recon-check: options, inputs that are wrong, --libs as ldd, saved facts.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
program "$T/app" 'int main(void){return 0;}'

tap 64 'nothing to judge' recon-check
one_line "$T/err" 'one line'
tap 64 'an unknown option' recon-check --formt jsonl x
has "$T/err" "the nearest is '--format'" 'the nearest one'
tap 64 'an unknown format' recon-check --format xml "$T/app"
tap 64 'an unknown rule' recon-check --skip lib-not-fuond "$T/app"
has "$T/err" "the nearest is 'lib-not-found'" 'the nearest one'
tap 64 'an unknown fact' recon-check --assume drivr.cuda=1 "$T/app"
one_line "$T/err" 'one line'
tap 64 'no compute capability' recon-check --assume gpu=H100 "$T/app"
printf 'A=1\nnonsense\n' >"$T/env"
tap 64 'a bad environment' recon-check --env-file "$T/env" "$T/app"
has "$T/err" "$T/env:2: 'nonsense' is no NAME=VALUE" 'file and line'
tap 127 'no such program' recon-check "$T/none"
one_line "$T/err" 'one line'
echo 'some text' >"$T/text"
tap 126 'a text is no program' recon-check "$T/text"
has "$T/err" 'text' 'and that is said'
tap 126 'a folder is no program' recon-check "$T"
mkfifo "$T/fifo"
tap 126 'a FIFO is no program' timeout 20 recon-check "$T/fifo"
tap 65 'no facts' recon-check --facts "$T/text" "$T/app"
one_line "$T/err" 'one line'
tap 127 'no facts file' recon-check --facts "$T/none.facts" "$T/app"
tap 74 'a FIFO as facts' timeout 20 recon-check --facts "$T/fifo" "$T/app"
echo 'version = 1; nodee = "x";' >"$T/bad.facts"
tap 65 'an unknown key in facts' recon-check --facts "$T/bad.facts" "$T/app"
has "$T/err" "bad.facts:1: unknown key 'nodee', the nearest is 'node'" 'file, line, nearest'
tap 73 'facts into a folder that is not there' recon-check --save-facts "$T/none/x.facts"

# as ldd, path by path
for p in /bin/ls /bin/sh "$abs_top_builddir/libexec/recon/recon-probe" "$T/app"; do
    tap 0 "--libs $p" recon-check --libs "$p"
    sort "$T/out" | sed 's/^ld-linux-x86-64.so.2 => //' >"$T/ours"
    ldd "$p" | sed -n 's/^[ \t]*\([^ ]* => [^ ]*\) (0x.*/\1/p; s/^[ \t]*\(\/[^ ]*\) (0x.*/\1/p' | sort >"$T/ldd"
    if cmp -s "$T/ours" "$T/ldd"; then ok "as ldd says of $p"; else not_ok "as ldd says of $p" "$(diff "$T/ours" "$T/ldd")"; fi
done
tap 0 'a library' recon-check /lib/x86_64-linux-gnu/libm.so.6
tap 0 'found in PATH' recon-check env
tap 0 'several programs' recon-check "$T/app" /bin/ls
tap 0 'options after the program' recon-check "$T/app" --format jsonl
has "$T/out" '"type":"summary"' 'are taken'

# saved facts stand in for the node
tap 0 'facts are saved' recon-check --save-facts "$T/here.facts"
tap 0 'and judged by' recon-check --facts "$T/here.facts" "$T/app"
lacks "$T/err" 'stale' 'they are fresh'
sed 's/^boot_id = .*/boot_id = "another";/' "$T/here.facts" >"$T/boot.facts"
tap 0 'facts of an earlier boot' recon-check --facts "$T/boot.facts" "$T/app"
has "$T/err" 'facts-stale' 'are told'
one_line "$T/err" 'in one line'
sed 's/^taken = .*/taken = "2020-01-01T00:00:00Z";/' "$T/here.facts" >"$T/old.facts"
tap 0 'old facts' recon-check --facts "$T/old.facts" "$T/app"
has "$T/err" 'more than a day ago' 'are told'
printf 'gpus = ( { vendor = "nvidia"; compute_capability = "7.5"; } );\n' >"$T/part"
tap 0 'a part of the facts is assumed from a file' recon-check --assume "$T/part" --save-facts "$T/assumed.facts"
has "$T/assumed.facts" 'compute_capability = "7.5"' 'and laid upon the others'

# another root
mkdir -p "$T/root/app" "$T/root/lib64"
cp "$T/app" "$T/root/app/app"
tap 78 'a root without a C library' recon-check --root "$T/root" /app/app
has "$T/out" 'lib-not-found: libc.so.6' 'lacks it'
cp /lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2 "$T/root/lib64/"
tap 0 'a root with one' recon-check --root "$T/root" --libs /app/app
has "$T/out" 'libc.so.6 => /lib64/libc.so.6' 'finds it there'

# ld.so.preload is read as it stands, whatever the facts say of it
if unshare -rm true 2>/dev/null && [ -r /etc/ld.so.cache ]; then
    for lib in one two; do echo "int ${lib}_of_two;" | ${CC:-cc} -xc -shared -fPIC -nostdlib -o "$T/lib$lib.so" -; done
    printf '%s\n' "$T/libone.so" "$T/libtwo.so" >"$T/preload"
    cp /etc/ld.so.cache "$T/"
    with_preload() {
        unshare -rm sh -c 'mount -t tmpfs none /etc && cp "$1/ld.so.cache" /etc/ && cp "$1/preload" /etc/ld.so.preload && shift && exec "$@"' \
            sh "$T" "$@"
    }
    tap 0 'a list of two preloads' with_preload recon-check --libs "$T/app"
    has "$T/out" "libone.so => $T/libone.so" 'the first'
    has "$T/out" "libtwo.so => $T/libtwo.so" 'the second'
    recon-check --save-facts "$T/before" >/dev/null 2>&1
    tap 0 'facts of this boot, taken before there was one' with_preload recon-check --facts "$T/before" --libs "$T/app"
    has "$T/out" "libtwo.so => $T/libtwo.so" 'it counts'
else
    skip 'a mount of its own for ld.so.preload wants unshare -rm'
fi

# NUL-separated environment, as /proc has it
env -i LD_LIBRARY_PATH=/a sh -c 'cat /proc/self/environ' >"$T/environ"
tap 0 'an environment ended by NULs' recon-check --env-file "$T/environ" "$T/app"

# --help, the man page and the rules' page agree with the program
recon-check --help >"$T/help"
for o in $(sed -n 's/^.*--\([a-z][a-z-]*\).*/\1/p' "$T/help" | sort -u); do
    if sed 's/\\-/-/g' "$abs_top_srcdir/man/recon-check.1" | grep -q -e "-$o\( \|\$\)"; then ok "man: --$o"
    else not_ok "man: --$o"; fi
done
recon-check --list-rules --format jsonl | sed 's/.*"rule":"\([^"]*\)","level":"\([^"]*\)","scope":"\([^"]*\)".*/\1 \2 \3/' >"$T/rules"
while read -r rule level scope; do
    want="## $rule"
    if grep -qx "$want" "$abs_top_srcdir/doc/rules.md" && sed -n "/^## $rule\$/,/^## /p" "$abs_top_srcdir/doc/rules.md" |
        grep -q "^$level, scope $scope"; then ok "doc/rules.md: $rule"
    else not_ok "doc/rules.md: $rule" "wanted '$want' and '$level, scope $scope'"; fi
done <"$T/rules"
if [ "$(grep -c '^## ' "$abs_top_srcdir/doc/rules.md")" = "$(wc -l <"$T/rules")" ]; then ok 'doc/rules.md has no other'
else not_ok 'doc/rules.md has no other' "$(grep '^## ' "$abs_top_srcdir/doc/rules.md")"; fi
finish

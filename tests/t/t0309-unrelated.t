#!/bin/sh
# A node that changed in a way that has nothing to do with a program: a library was installed beside its own and the loader's
# cache was made anew. Nothing but notes.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/elf-inputs.sh"
PATH=$PATH:/usr/sbin:/sbin
unset LD_LIBRARY_PATH LD_PRELOAD RECON_CHECK RECON_PIN RECON_RULES
mkdir "$T/upper" "$T/o" || exit 99
# new_node COMMAND: in a view of this host whose /usr and /etc may be changed
new_node() {
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs none "$1" && shift && for d in usr etc; do
        mkdir -p "$0/$d.up" "$0/$d.work" && mount -t overlay none -o "lowerdir=/$d,upperdir=$0/$d.up,workdir=$0/$d.work" "/$d" || exit 99
        done; exec "$@"' "$T/o" "$T/o" "$@"
}
new_node true 2>/dev/null || skip_all 'no overlay in a mount namespace here'
dir=$(dirname "$(ldconfig -p | sed -n 's/.*libc\.so\.6 (libc6.*=> //p' | head -1)")
dir=$(realpath "$dir")
lib "$T/libunrelated.so.1" libunrelated.so.1 'int unrelated(void){return 0;}'
cat >"$T/judge" <<END
#!/bin/sh
cp "$T/libunrelated.so.1" "$dir/" && ldconfig && ldconfig -p | grep -q libunrelated || exit 98
for pin in "$T"/*.pin; do echo "== \$pin"; recon-launch -v --check-only --pin "\$pin" || exit; done
END
chmod +x "$T/judge"
for p in true git perl python3 bash ssh gcc find awk; do
    path=$(command -v $p) && path=$(realpath "$path") && [ -x "$path" ] && recon-pin capture -o "$T/$p.pin" "$path" 2>/dev/null
done
pins=$(ls "$T"/*.pin | wc -l)
if [ "$pins" -ge 3 ]; then ok "pins of $pins programs"; else not_ok 'pins of programs' "$pins"; fi
tap 0 'a library was installed' new_node "$T/judge"
if [ "$(grep -c '^== ' "$T/out")" = "$pins" ]; then ok 'every pin was judged'; else not_ok 'every pin was judged' "$(cat "$T/out")"; fi
lacks "$T/out" 'error:' 'no error'
lacks "$T/out" 'warn:' 'no warning'
if [ -e "$dir/libunrelated.so.1" ]; then not_ok 'this host is as it was'; else ok 'this host is as it was'; fi
finish

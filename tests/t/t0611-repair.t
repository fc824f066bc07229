#!/bin/bash
# --resume: damaged results are found by size and digest and made again; work folders of killed attempts go.
. "${abs_top_srcdir:?}/tests/lib.sh"
unset SLURM_CONF
HOME=$T/home; export HOME
mkdir -p "$T/home" "$T/w" && cd "$T/w" || exit 99
for k in 0 1 2; do echo "data $k" >"s$k"; echo "s$k"; done >list.txt
cat >prog <<'END'
#!/bin/sh
mkdir "$2/sub" && cp "$1" "$2/sub/mesh.ply" && cp "$1" "$2/preview.png"
[ ! -e slow ] || sleep 30
END
chmod +x prog
tap 0 'three datasets' recon-submit --local --run-dir r --datasets list.txt -- ./prog '{dataset}' '{out}'
whole() {
    for k in 0 1 2; do
        cmp -s "s$k" "r/out/0/$k/sub/mesh.ply" && cmp -s "s$k" "r/out/0/$k/preview.png" && [ -s "r/out/0/$k/recon.json" ] ||
            { not_ok "$1" "dataset $k"; return; }
    done
    if [ "$(ls -A r/out/0 | tr '\n' ' ')" = '0 1 2 ' ]; then ok "$1"; else not_ok "$1" "$(ls -A r/out/0)"; fi
}
for way in 'truncate -s 1 r/out/0/0/sub/mesh.ply' 'rm r/out/0/1/recon.json' 'rm r/out/0/2/preview.png' 'rm -r r/out/0/2/sub' \
    'truncate -s 0 r/out/0/0/recon.json' 'printf D >r/out/0/1/b; dd if=r/out/0/1/b of=r/out/0/1/sub/mesh.ply conv=notrunc status=none; rm r/out/0/1/b'; do
    eval "$way"
    tap 0 "dry run after $way" recon-submit --local --dry-run --resume r
    has "$T/err" '1 published result is damaged and would be made again' 'tells'
    tap 0 'resume' recon-submit --local --resume r
    has "$T/err" '1 published result is damaged and made again: dataset ' 'finds it'
    has "$T/err" '3 of 3 datasets done, 0 failed, 0 skipped, 1 of 1 damaged made again' 'and the end says so'
    whole 'all are whole again'
done
tap 0 'resume of a good run' recon-submit --local --resume r
has "$T/err" 'nothing to do' 'has nothing to do'

# digests in the report
printf D | dd of=r/out/0/1/sub/mesh.ply conv=notrunc status=none
tap 0 'report' recon-report --format csv r
has "$T/out" '1,s1,done' 'goes by sizes'
tap 0 'report --verify' recon-report --verify --format csv r
has "$T/out" '1,s1,failed' 'goes by digests'
has "$T/out" 'has digest xxh3:' 'and says which file'
has "$T/out" '2,s2,done' 'of that dataset only'
tap 0 'resume' recon-submit --local --resume r
whole 'makes it again'

# a kill inside: the result is aside, its folder not yet removed
mv r/out/0/2 r/out/0/.2.old.77.0
tap 0 'resume after a kill while a result was taken away' recon-submit --local --resume r
whole 'is whole'
printf '#\n' >>r/env.pin
mv r/out/0/1 r/out/0/.1.old.77.0
tap 0 'the same for another pin' recon-submit --local --redo-changed --resume r
whole 'is whole'

# work folders
rm -r r/out/0/1; : >slow
recon-submit --local --resume r >"$T/out" 2>"$T/err" & pid=$!
for i in $(seq 200); do [ -e "$(echo r/out/0/.1.*/preview.png)" ] && break; sleep 0.05; done
work=$(cd r/out/0 && echo .1.*); sub=$(echo "$work" | cut -d. -f3)
mkdir r/out/0/.0.99.0.0 r/out/0/.0.0.0.0
launcher=$(pgrep -P "$pid" | head -1)
kill -KILL "$launcher"; kill -KILL $pid; wait $pid 2>/dev/null
for i in $(seq 400); do pgrep -f "$T/w/r/out/0/$work" >/dev/null || break; sleep 0.05; done
if [ -d "r/out/0/$work" ]; then ok 'a killed launcher leaves its work'; else not_ok 'a killed launcher leaves its work' "$(ls -A r/out/0)"; fi
rm slow
tap 0 'resume' recon-submit --local --resume r
has "$T/err" 'that killed attempts had left were removed' 'clears up'
if [ -e "r/out/0/$work" ]; then not_ok 'the work of the killed one is gone'; else ok 'the work of the killed one is gone'; fi
if [ -e r/out/0/.0.99.0.0 ]; then ok 'what nobody knows stays'; else not_ok 'what nobody knows stays'; fi
rmdir r/out/0/.0.99.0.0
whole 'and all is whole'
finish

#!/bin/sh
# A writer killed at any moment leaves nothing that looks whole; another one completes the run.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
fake=$abs_top_builddir/tests/fakes/fake-run

i=0; while [ $i -lt 300 ]; do echo "scan-$i"; i=$((i + 1)); done >"$T/list.txt"
big=$(head -c 20000 /dev/zero | tr '\0' x)
i=0; while [ $i -lt 300 ]; do
    printf 'publish %d mesh.ply %s\ndataset %d done 0 1 3 1\n' $i "$big" $i; i=$((i + 1))
done >"$T/work"
{ echo "create $T/list.txt"; echo "map 0 300 $(seq -s ' ' 0 299)"; } >"$T/script"
tap 0 'the run is made' sh -c "'$fake' '$T/run' <'$T/script'"

# the dataset at which each writer is killed depends on the machine; the promise does not
for part in 0 1 2 3; do
    { echo 'attempt 0 0 n1'; cat "$T/work"; } 2>/dev/null | "$fake" "$T/run" >/dev/null 2>&1 &
    pid=$!
    want=$((part * 60 + 20)); turn=0
    while [ "$(ls "$T/run/out/0" 2>/dev/null | wc -l)" -lt $want ] && [ $turn -lt 500 ]; do sleep 0.01; turn=$((turn + 1)); done
    kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
    whole=$(ls "$T/run/out/0" | wc -l)
    tap 0 "killed after about $want: what is there fits the schemas" validate_run "$T/run"
    tap 0 'and can be reported' recon-report --format csv "$T/run"
    sane=$(grep -c ',done,' "$T/out")
    if [ "$sane" = "$whole" ] && [ "$whole" -ge $want ]; then ok "$whole results, all whole"
    else not_ok 'all results are whole' "$whole folders, $sane done, $want wanted"; fi
    bad=; for d in "$T/run/out/0"/*; do [ "$(wc -c <"$d/mesh.ply")" = 20000 ] || bad="$bad $d"; done
    [ -z "$bad" ] && ok 'byte for byte' || not_ok 'byte for byte' "$bad"
done
{ echo 'attempt 0 0 n1'; cat "$T/work"; echo 'end ok 0 0'; } >"$T/script"
tap 0 'another writer completes it' sh -c "'$fake' '$T/run' <'$T/script'"
tap 0 'all done' recon-report --format csv "$T/run"
[ "$(grep -c ',done,' "$T/out")" = 300 ] && ok '300 datasets' || not_ok '300 datasets' "$(grep -vc ',done,' "$T/out")"
finish

#!/bin/sh
# The validator takes what the formats say and refuses what they do not; everything that lib/record writes passes it.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
fake=$abs_top_builddir/tests/fakes/fake-run

# refused SCHEMA 'line' 'reason' : one bad line after a good file is told with its number
refused() {
    printf '%s\n' "$2" >"$T/bad.jsonl"
    tap 1 "$1 refused: $3" validate "$1" "$T/bad.jsonl"
    has "$T/err" "bad.jsonl:1: $3" "and says '$3'"
}
end='"at_ms":1.0,"status":"ok","exit":0,"signal":0,"done":1,"failed":0,"user_ms":1.0,"sys_ms":1.0,"max_rss":4'
printf '{"v":1,"type":"end",%s}\n' "$end" >"$T/good.jsonl"
tap 0 'a good end event passes' validate events "$T/good.jsonl"
refused events "{\"v\":2,\"type\":\"end\",$end}" '/v: 2, wanted 1'
refused events "{\"v\":1,\"type\":\"end\",$end,\"more\":1}" "whole: unknown key 'more'"
refused events '{"v":1,"type":"end","at_ms":1.0}' "whole: no key 'status'"
refused events "{\"v\":1,\"type\":\"end\",$end" "'}' expected near end of file"
refused events '{"v":1,"type":"alarm","at_ms":-1,"dataset":1,"rule":"r","text":"t"}' '/at_ms: -1 is below 0'
refused events '{"v":1,"type":"alarm","at_ms":1,"dataset":"1","rule":"r","text":"t"}' '/dataset: "1" is not of type "integer"'
refused events '{"v":1,"type":"alarm","at_ms":1,"dataset":1,"dataset":1,"rule":"r","text":"t"}' 'duplicate object key'
refused events '{"v":1,"type":"other"}' '/type: "other", wanted'
refused findings '{"v":1,"type":"summary","status":"fine","errors":0,"warnings":0,"not_checked":0,"ms":1}' '/status: "fine" is none of'
refused dataset '{"name":"a"}' "whole: no key 'path'"
refused dataset '{"name":"a","path":"/a","x":[1]}' '/x: [1] is not of type'
refused submit '{"v":1,"type":"intent","sub":0}' "whole: no key 'time'"
{ cat "$T/good.jsonl"; printf '{"v":1,"type":"e'; } >"$T/torn.jsonl"
tap 1 'a torn last line is told' validate events "$T/torn.jsonl"
has "$T/err" 'torn.jsonl:2: no newline' 'with its number'
tap 0 'and passes where a writer may have been killed' validate_torn events "$T/torn.jsonl"
printf '{"type":"object","maximum":3}' >"$T/schema.json"
tap 64 'a keyword that is not checked is refused' "$validate_program" "$T/schema.json" "$T/good.jsonl"

# every schema is one that the validator can use
for s in "$abs_top_srcdir"/doc/schemas/*.json; do
    echo '{}' >"$T/none.jsonl"
    tap 1 "schema $(basename "$s")" "$validate_program" "$s" "$T/none.jsonl"
done

# what lib/record writes
printf 'a\nb\377\n/c/a\n' >"$T/list.txt"
cat >"$T/script" <<EOF
create $T/list.txt
map 0 2 0 1 2
submit 0 local 4711
submit-error 1 slurm no such partition
intent 2 local
bad-node gpu017 gpu-lost
attempt 0 0 gpu017
finding warn job env-drift CUDA_HOME other value
step 0 fuse tsdf.fuse 84
alarm 0 leak five samples up
publish 0 mesh.ply ply
dataset 0 done 0 100 9168 18332
dataset 1 failed 65 7 0 0 no frames
end failed 65 0
attempt 0 1 gpu018
raw {"v":1,"type":"at
EOF
tap 0 "a run directory is written" sh -c "\"$fake\" \"$T/run\" <\"$T/script\""
tap 0 'and fits the schemas' validate_run "$T/run"
printf '{"v":1,"type":"end"}\n' >>"$T/run/events/0/0/0.0.jsonl"
tap 1 'a bad line in an events file is found' validate_run "$T/run"
has "$T/err" '0.0.jsonl:9:' 'with file and line'
sed -i '$d' "$T/run/events/0/0/0.0.jsonl"
tap 0 'mended' validate_run "$T/run"
sed -i 's/"files"/"fils"/' "$T/run/out/0/0/recon.json"
tap 1 'a bad recon.json is found' validate_run "$T/run"
finish

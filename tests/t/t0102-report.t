#!/bin/sh
# recon-report over run directories written by lib/record: what each state looks like, the forms, bad input.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
fake() { "$abs_top_builddir/tests/fakes/fake-run" "$T/$1"; }

printf 'kitchen\noffice\nhall\ncellar\nattic\n' >"$T/list.txt"
fake run <<EOF || exit 99
create $T/list.txt
map 0 1 0 1 2 3
submit 0 local 4711
bad-node gpu018 lib-not-found
attempt 0 0 gpu017
step 0 fuse tsdf.fuse 80
step 0 save mesh.write 20
publish 0 mesh.ply ply
dataset 0 done 0 2100 9168 18332
end ok 0 0
attempt 0 1 gpu018
finding error node lib-not-found libcudart.so.13 found nowhere
end refused 75 0
attempt 0 1 gpu018
finding error node lib-not-found libcudart.so.13 found nowhere
end refused 75 0
attempt 0 2 gpu017
finding error data pose-invalid frame-5 NaN in its pose
step 2 fuse tsdf.fuse 100
alarm 2 leak five samples up
dataset 2 failed 65 150 0 0 no valid pose
end failed 65 0
attempt 0 3 gpu019
raw {"v":1,"type":"ste
EOF
tap 0 'a run that is still going on' recon-report "$T/run"
has "$T/out" '5: 1 done, 1 failed, 1 refused, 1 lost or running, 1 waiting; 5 attempts; 1 node found unfit' 'totals'
has "$T/out" 'failed by lib-not-found 1, pose-invalid 1' 'by finding'
has "$T/out" 'submitted 0: 1 task, local, job 4711' 'the submission'
row() { if grep -Eq "$1" "$T/out"; then ok "$2"; else not_ok "$2" "$(cat "$T/out")"; fi; }
row '^kitchen +done +9168 +18332 +2\.10 s *$' 'a done one with its mesh and time'
row '^office +refused +- +- +- +lib-not-found: libcudart.so.13: found nowhere, on gpu018$' 'a refused one with the finding'
row '^hall +failed +- +- +150.* ms +no valid pose, on gpu017$' 'a failed one with its reason'
row '^cellar +lost or running .*no end recorded, on gpu019$' 'one without an end'
row '^attic +waiting' 'one that waits'
row '^fuse +tsdf.fuse +cpu +2 +90.* ms +80.* ms +100.* ms +90.0 %' 'a step: median, min, max, share'
row '^ +2x error lib-not-found: libcudart.so.13: found nowhere \(on gpu018\)$' 'equal findings counted together'
row '^ +1x warn leak: five samples up' 'an alarm'
has "$T/out" "outputs   $T/run/out" 'the folder of the results'
[ ! -s "$T/err" ] && ok 'nothing on stderr' || not_ok 'nothing on stderr' "$(cat "$T/err")"

tap 0 'as JSON, option after the run' recon-report "$T/run" --format json
cp "$T/out" "$T/report.json"
tap 0 'fits its schema' validate report "$T/report.json"
has "$T/report.json" '"totals":{"datasets":5,"done":1,"failed":1,"refused":1,"skipped":0,"lost":1,"waiting":1,"cancelled":0,"attempts":5,"bad_nodes":1}' 'with totals'
tap 0 'as CSV' recon-report --format=csv "$T/run"
has "$T/out" '2,hall,failed,65,150.000,,,1,gpu017,pose-invalid,no valid pose' 'a row a dataset'
[ "$(wc -l <"$T/out")" = 6 ] && ok 'and a head' || not_ok 'and a head' "$(cat "$T/out")"
tap 0 'what the fake wrote fits the schemas' validate_run "$T/run"

# the result counts, not the word
rm "$T/run/out/0/0/mesh.ply"
tap 0 'a published file is gone' recon-report "$T/run"
row '^kitchen +failed .*missing or damaged' 'is not done'

# done beats failed, later beats earlier
fake run <<EOF || exit 99
map 1 1 2 1
attempt 1 0 gpu017
publish 2 mesh.ply ply
dataset 2 done 0 90 3 1
end ok 0 0
attempt 1 1 gpu017
dataset 1 failed 65 90 0 0 another reason
end failed 65 0
EOF
tap 0 'a second submission' recon-report "$T/run"
row '^hall +done +3 +1' 'done after failed'
row '^office +failed .*another reason' 'the latest attempt counts'

# called off while it ran: cancelled, but for what had failed by itself; tried again later, that counts
fake off <<EOF || exit 99
create $T/list.txt
map 0 2 0 1 2 3 4
submit 0 local 4712
attempt 0 0 gpu017
dataset 0 failed 65 9 0 0 no valid pose
end killed 143 15
attempt 0 1 gpu018
dataset 2 failed 143 9 0 0 ended by signal 15
end killed 143 15
cancel 0
map 1 1 3
submit 1 local 4713
attempt 1 0 gpu018
end killed 143 15
EOF
tap 0 'a run that was called off' recon-report "$T/off"
row '^kitchen +failed .*no valid pose' 'what had failed by itself'
row '^office +cancelled .*it was cancelled while it ran' 'what was not begun in a task that ran'
row '^hall +cancelled .*it was cancelled while it ran' 'what was running'
row '^cellar +failed .*ended by signal 15' 'a later submission that nobody called off'
row '^attic +cancelled .*before it began' 'what waited'

# names are foreign text
printf '{"path":"/a","name":"esc\\u001b[31m"}\n{"path_b64":"L/8=","name":"q\\"x,y"}\n' >"$T/odd.jsonl"
printf 'create %s\n' "$T/odd.jsonl" | fake odd || exit 99
tap 0 'odd names' recon-report "$T/odd"
lacks "$T/out" "$(printf '\033')" 'no control character reaches the terminal'
tap 0 'odd names as CSV' recon-report -f csv "$T/odd"
has "$T/out" '1,"q""x,y",waiting' 'are quoted'

# the runner ended before its first dataset: its own words
fake early <<EOF || exit 99
create $T/list.txt
map 0 1 0
attempt 0 0 n1
finding error job runner-failed recon-run kernel 'x.y' is in no module
end failed 78 0
EOF
tap 0 'a runner that ended early' recon-report "$T/early"
row "^kitchen +failed .*kernel 'x.y' is in no module, on n1" 'its reason is the dataset'"'"'s'
has "$T/out" 'failed by runner-failed 1' 'and is counted'

# more than 200
i=0; while [ $i -lt 260 ]; do echo "scan-$i"; i=$((i + 1)); done >"$T/many.txt"
{
    echo "create $T/many.txt"; echo "map 0 260 $(seq -s ' ' 0 259)"; echo 'attempt 0 0 n1'
    i=0; while [ $i -lt 210 ]; do printf 'publish %d m x\ndataset %d done 0 %d 3 1\n' $i $i $((i + 1)); i=$((i + 1)); done
    while [ $i -lt 213 ]; do echo "dataset $i failed 65 1 0 0 why $i"; i=$((i + 1)); done
    echo 'end failed 65 0'
} | fake many || exit 99
tap 0 'many datasets' recon-report "$T/many"
has "$T/out" 'more than 200 datasets: 50 of 50 not done (waiting and cancelled ones left out) and the 5 slowest done' 'the table says what it shows'
row '^scan-212 +failed .*why 212' 'what failed'
row '^scan-209 +done .*210' 'the slowest'
lacks "$T/out" 'scan-204 ' 'but not the sixth'
[ "$(grep -c '^scan-' "$T/out")" = 55 ] && ok 'and no more' || not_ok 'and no more' "$(grep -c '^scan-' "$T/out")"

# bad input
tap 64 'no such run' recon-report "$T/none"
one_line "$T/err" 'one line'
tap 64 'a folder that is no run' recon-report "$T"
has "$T/err" "lacks 'datasets.jsonl'" 'what lacks'
mkfifo "$T/fifo"
tap 64 'a FIFO' recon-report "$T/fifo"
tap 64 'no argument' recon-report
tap 64 'two arguments' recon-report "$T/run" "$T/run"
tap 64 'a form that is not there yet' recon-report --format html "$T/run"
has "$T/err" 'not available in this version' 'says so'
tap 64 'an unknown form' recon-report --format jso "$T/run"
has "$T/err" "the nearest is 'json'" 'names the nearest'
tap 74 'a full disk' sh -c "recon-report --format json '$T/many' >/dev/full"
printf 'torn in the middle\n' >>"$T/many/events/0/0/0.0.jsonl"
tap 0 'a damaged events file' recon-report "$T/many"
has "$T/err" "0.0.jsonl' line" 'is named on stderr'
has "$T/out" 'not readable' 'and in the report'

tap 0 'help' recon-report --help
cp "$T/out" "$T/help"
for o in $(grep -oE -e '--[a-z-]+' "$T/help" | sort -u); do
    if sed 's/\\-/-/g' "$abs_top_srcdir/man/recon-report.1" | grep -qF -e "$o"; then ok "$o is in the manual"
    else not_ok "$o is in the manual"; fi
done
finish

#!/bin/sh
# Everything that the programs write as JSON fits doc/schemas: events, run directories, findings, reports.
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
cd "$T" || exit 99
unset SLURM_JOB_ID RECON_EVENTS_FD RECON_CHECK

cat >scan.conf <<'E2'
version = 1;
steps = (
  { name = "scene"; kernel = "scene.render_rgbd"; params = { scene = "room"; seed = 1; frames = 2; }; },
  { name = "write"; kernel = "frames.write"; }
);
E2
tap 0 'a pipeline with --events' recon-run --pipeline scan.conf --out scan --device cpu --events events.jsonl
tap 0 'its events fit' validate events events.jsonl
for t in attempt step end; do has events.jsonl "\"type\":\"$t\"" "with an event $t"; done

tap 0 'findings and libraries as JSON lines' recon-check --format jsonl --libs /bin/sh
cp out findings.jsonl
tap 0 'they fit' validate findings findings.jsonl
for t in library summary; do has findings.jsonl "\"type\":\"$t\"" "with a line $t"; done

printf 'one\ntwo\n./three\n' >list.txt; mkdir one two three
recon-submit --local --datasets list.txt --run-dir run -- /bin/sh -c \
    'case {dataset} in *two) echo sorry >&2; exit 65 ;; esac; echo x >{out}/mesh' >out 2>err
tap 0 'a run of a program over three datasets fits' validate_run run
for f in submit.jsonl events/0/0/0.0.jsonl out/0/0/recon.json; do
    if [ -s "run/$f" ]; then ok "$f is written"; else not_ok "$f is written" "$(cat err)"; fi
done
tap 0 'its report' recon-report run --format json
cp out report.json
tap 0 'fits' validate report report.json
has report.json '"totals":{"datasets":3,"done":2,"failed":1,' 'with what happened'
finish

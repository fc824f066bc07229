#!/bin/sh
# Saved node facts against one fixed pin and resolution: the findings are the golden ones. New facts need only a file
# X.facts and its X.golden (made by lib/check/test/golden, read, then kept).
. "${abs_top_srcdir:?}/tests/lib.sh"
. "$abs_top_srcdir/tests/validate/validate.sh"
golden=$abs_top_builddir/lib/check/test/golden
fixtures=$abs_top_srcdir/tests/fixtures

for facts in "$fixtures"/facts/*.facts; do
    node=$(basename "$facts" .facts)
    tap 0 "$node is judged" "$golden" "$fixtures/golden.pin" "$facts"
    cp "$T/out" "$T/$node.jsonl"
    if diff "$fixtures/facts/$node.golden" "$T/$node.jsonl" >"$T/diff"; then ok "$node: the golden findings"
    else not_ok "$node: the golden findings" "$(cat "$T/diff")"; fi
    tap 0 "$node: they follow the schema" validate findings "$T/$node.jsonl"
    # facts read and written are the same facts
    tap 0 "$node: read by recon-check" recon-check --facts "$facts" --save-facts "$T/again.facts"
    grep -v '^#' "$facts" >"$T/a"; grep -v '^#' "$T/again.facts" >"$T/b"
    if cmp -s "$T/a" "$T/b"; then ok "$node: written as it was"; else not_ok "$node: written as it was" "$(diff "$T/a" "$T/b")"; fi
done
if [ "$n" -ge 10 ]; then ok 'there are facts to judge'; else not_ok 'there are facts to judge'; fi
finish

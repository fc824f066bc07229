# Checks of what recon wrote against doc/schemas. Source it after tests/lib.sh.
validate_program=${abs_top_builddir:?}/tests/validate/validate

# validate SCHEMA FILE...: SCHEMA by its name ("findings"); reasons with file and line on stderr
validate() {
    validate_schema=${abs_top_srcdir:?}/doc/schemas/$1.json
    shift
    "$validate_program" "$validate_schema" "$@"
}
# validate_torn: the same, but a last line may be torn, as a killed writer leaves it
validate_torn() {
    validate_schema=${abs_top_srcdir:?}/doc/schemas/$1.json
    shift
    "$validate_program" --torn "$validate_schema" "$@"
}
# validate_run RUN: every JSON and JSONL file that recon writes in a run directory. Fails also when there are no datasets.
validate_run() {
    validate_bad=0
    validate dataset "$1/datasets.jsonl" || validate_bad=1
    [ ! -f "$1/submit.jsonl" ] || validate_torn submit "$1/submit.jsonl" || validate_bad=1
    [ ! -f "$1/bad-nodes.jsonl" ] || validate_torn bad-node "$1/bad-nodes.jsonl" || validate_bad=1
    [ -z "$(find "$1/events" -name '*.jsonl' | head -n 1)" ] ||
        find "$1/events" -name '*.jsonl' -exec "$validate_program" --torn "$abs_top_srcdir/doc/schemas/events.json" {} + ||
        validate_bad=1
    [ -z "$(find "$1/out" -mindepth 3 -maxdepth 3 -name recon.json | head -n 1)" ] ||
        find "$1/out" -mindepth 3 -maxdepth 3 -name recon.json \
            -exec "$validate_program" "$abs_top_srcdir/doc/schemas/result.json" {} + || validate_bad=1
    return $validate_bad
}

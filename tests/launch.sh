# Helpers of the launcher's scenarios, sourced after lib.sh: pins and run directories made by hand.

# pin FILE PROGRAM ['{ name = ..; how = ..; value = ..; }'...]: a pin of one program and these variables
pin() {
    file=$1 program=$2; shift 2
    vars= sep=
    for v; do vars="$vars$sep$v" sep=', '; done
    printf '%s\n' 'version = 1;' \
        'captured = { node = "login"; time = "2026-11-30T14:00:00Z"; recon = "0.1.0"; umask = "0022"; };' \
        "variables = ( $vars );" \
        "objects = ( { role = \"program\"; path = \"$program\"; why = \"path\"; size = $(wc -c <"$program")L; } );" \
        >"$file"
}

# le BYTES NUMBER: little-endian
le() {
    k=0 v=$2
    while [ $k -lt "$1" ]; do
        printf "\\$(printf %03o $((v % 256)))"
        v=$((v / 256)) k=$((k + 1))
    done
}

# new_run DIR PER_TASK NAME...: a run directory whose datasets are $T/d/NAME, all in submission 0
new_run() {
    dir=$1 per=$2; shift 2
    rm -rf "$dir"
    mkdir -p "$dir/events" "$dir/logs" "$dir/out" "$dir/sub"
    offset=0 i=0
    for name; do
        le 8 $offset >>"$dir/datasets.idx"
        line=$(printf '{"name":"%s","path":"%s/d/%s"%s}' "$name" "$T" "$name" "${columns:-}")
        printf '%s\n' "$line" >>"$dir/datasets.jsonl"
        offset=$(wc -c <"$dir/datasets.jsonl")
    done
    le 8 "$offset" >>"$dir/datasets.idx"
    { printf reconMP1; le 4 $((($# + per - 1) / per)); le 4 "$per"
      while [ $i -lt $# ]; do le 4 $i; i=$((i + 1)); done; } >"$dir/sub/0.map"
}

# event FILE TYPE KEY: the values of a key of all events of a type, one a line
event() {
    sed -n "/\"type\":\"$2\"/s/.*\"$3\":\"\{0,1\}\([^\",}]*\).*/\1/p" "$1"
}
# same 'value' 'wanted' 'name'
same() { if [ "$1" = "$2" ]; then ok "$3"; else not_ok "$3" "found: $1" "wanted: $2"; fi; }

# until_true SECONDS COMMAND...
until_true() {
    tries=$(($1 * 20)); shift
    until "$@" 2>/dev/null; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}

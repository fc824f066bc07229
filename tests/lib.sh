# Helpers of the scenarios: TAP for sh. Source it first:  . "${abs_top_srcdir:?}/tests/lib.sh"
# Scratch is a fresh folder $T (removed at the end); $DATA is the folder of real inputs, empty if it is not there.
n=0
failed=0
T=$(mktemp -d "${TMPDIR:-/tmp}/recon-test.XXXXXX") || exit 99
trap 'chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
export RECON_CACHE="$T/kept-facts" # not the folder of this host
DATA=
for d in "${RECON_TEST_DATA:-}" "$abs_top_srcdir/../shared/data"; do
    [ -n "$d" ] && [ -d "$d" ] && DATA=$(cd "$d" && pwd) && break
done

ok() { n=$((n + 1)); echo "ok $n - $1"; }
not_ok() { n=$((n + 1)); failed=1; echo "not ok $n - $1"; shift; for l; do printf '%s\n' "$l" | sed 's/^/# /'; done; }

# tap STATUS 'name' COMMAND...: runs it, output in $T/out and $T/err, passes when the exit status is STATUS
tap() {
    want=$1 name=$2; shift 2
    "$@" >"$T/out" 2>"$T/err" </dev/null; got=$?
    if [ "$got" = "$want" ]; then ok "$name"
    else not_ok "$name" "status $got, wanted $want: $*" "$(head -c 2000 "$T/out")" "$(head -c 2000 "$T/err")"; fi
}
# has FILE TEXT 'name': the file holds the fixed text
has() {
    if grep -qF -e "$2" "$1"; then ok "$3"
    else not_ok "$3" "'$2' is not in $1:" "$(head -c 2000 "$1")"; fi
}
lacks() {
    if grep -qF -e "$2" "$1"; then not_ok "$3" "'$2' is in $1:" "$(head -c 2000 "$1")"; else ok "$3"; fi
}
# one_line FILE 'name': exactly one line, the form of an error message
one_line() {
    if [ "$(wc -l <"$1")" = 1 ]; then ok "$2"; else not_ok "$2" "$(head -c 2000 "$1")"; fi
}
skip_all() { echo "1..0 # SKIP $1"; exit 0; }
skip() { n=$((n + 1)); echo "ok $n # SKIP $1"; }
finish() { echo "1..$n"; exit "$failed"; }

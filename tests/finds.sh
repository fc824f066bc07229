# found, for scenarios of findings. Source it after lib.sh.
# found RULE...: just these rules are told, in any order, as errors or warnings
found() {
    want=$(printf '%s\n' "$@" | sort | tr '\n' ' ')
    got=$(sed -n 's/^\(error\|warn\): \([a-z0-9-]*\): .*/\2/p' "$T/out" "$T/err" | sort | tr '\n' ' ')
    if [ "$got" = "$want" ]; then ok "finds $want"; else not_ok "finds $want" "got $got" "$(cat "$T/out" "$T/err")"; fi
}

# Small ELF inputs for scenarios, made by the C compiler alone. Source it after lib.sh.
CC=${CC:-gcc}
command -v ${CC%% *} >/dev/null 2>&1 || skip_all "no C compiler '$CC'"

# lib PATH SONAME 'C text' [option...]
lib() {
    lib_path=$1 lib_soname=$2; mkdir -p "$(dirname "$1")"; printf '%s\n' "$3" >"$T/lib.c"; shift 3
    $CC -shared -fPIC "-Wl,-soname,$lib_soname" -o "$lib_path" "$T/lib.c" "$@" || exit 99
}
# program PATH 'C text' [option...]
program() {
    program_path=$1; mkdir -p "$(dirname "$1")"; printf '%s\n' "$2" >"$T/program.c"; shift 2
    $CC -o "$program_path" "$T/program.c" "$@" || exit 99
}
# fatbin FILE.s 'KIND ARCH [MAJOR MINOR];...' ...: one container an argument, its images apart by ';'.
# KIND 1 PTX, 2 SASS. Headers as nvcc writes them, payloads of 8 bytes.
fatbin() {
    fatbin_file=$1; shift
    { printf '.section .nv_fatbin,"a"\n.balign 8\nfatbins:\n'
      for fatbin_container; do
          fatbin_images=$(printf '%s' "$fatbin_container;" | tr -cd ';' | wc -c)
          printf '.long 0xba55ed50\n.short 1, 16\n.quad %d\n' $((fatbin_images * 72))
          printf '%s\n' "$fatbin_container" | tr ';' '\n' | while read -r kind arch major minor; do
              printf '.short %d, 0x0101\n.long 64\n.quad 8\n.long 0, 0\n.short %d, %d\n' "$kind" "${minor:-7}" "${major:-1}"
              printf '.long %d, 0, 0\n.quad 0x11, 0, 0\n.quad 0\n' "$arch"
          done
      done
      printf '.section .nvFatBinSegment,"aw"\n.balign 8\n.long 0x466243b1, 1\n.quad fatbins, 0\n'
      printf '.section .note.GNU-stack,"",@progbits\n'
    } >"$fatbin_file"
}

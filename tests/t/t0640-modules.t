#!/bin/bash
# module load recon: PATH, MANPATH, RECON_*, from an installation that may be moved; the completion of an installation.
. "${abs_top_srcdir:?}/tests/lib.sh"
version=$(recon-submit --version | sed 's/.* //')
unset MAKEFLAGS MFLAGS MAKELEVEL
tap 0 'make install of these files' make -C "$abs_top_builddir" prefix="$T/first" install-nodist_modulefilesDATA \
    install-dist_completionDATA install-nodist_completionDATA
mkdir -p "$T/first/bin" "$T/first/share/man/man1"
cp "$T/first/share/modulefiles/recon/$version" "$T/tcl" && rm "$T/first/share/modulefiles/recon/$version"
mv "$T/first" "$T/moved here"
M="$T/moved here"

for init in /usr/share/lmod/lmod/init/bash /etc/profile.d/lmod.sh; do [ -r $init ] && break; done
lmod() { # lmod COMMANDS: in a clean shell
    env -i HOME="$T" PATH=/usr/bin:/bin LMOD_CACHED_LOADS=no bash -c ". $init; module use '$M/share/modulefiles'; $1" \
        >"$T/out" 2>"$T/err"
}
show='printf "%s\n" "PATH=$PATH" "MANPATH=$MANPATH" "RECON_HOME=$RECON_HOME" "RECON_VERSION=$RECON_VERSION"'
check() { # check NAME
    has "$T/out" "PATH=$M/bin:" "$1: PATH"
    has "$T/out" "MANPATH=$M/share/man:" "$1: MANPATH"
    has "$T/out" "RECON_HOME=$M" "$1: RECON_HOME"
    has "$T/out" "RECON_VERSION=$version" "$1: RECON_VERSION"
}
if [ -r $init ]; then
    lmod "module load recon && $show"
    check Lmod
    lmod "module load recon && module unload recon && $show"
    lacks "$T/out" "$M/bin" 'unload takes it back'
    lmod 'module whatis recon'
    cat "$T/out" "$T/err" >"$T/both"
    has "$T/both" 'reconstruction kernels' 'whatis'
    mv "$M" "$T/moved-on" # Lmod's own reader of Tcl files takes no path with a space
    M=$T/moved-on
    rm "$M/share/modulefiles/recon/$version.lua"
    cp "$T/tcl" "$M/share/modulefiles/recon/$version"
    lmod "module load recon && $show"
    check 'the Tcl file'
else
    skip 'no Lmod here'
fi
if command -v tclsh >/dev/null; then
    cat >"$T/run.tcl" <<'END'
foreach c {module-whatis conflict} { proc $c args {} }
foreach c {setenv prepend-path append-path} { proc $c {name value} { puts "$name=$value" } }
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
ModulesHelp
END
    mkdir -p "$M/share/modulefiles/recon"
    cp "$T/tcl" "$M/share/modulefiles/recon/$version"
    tap 0 'plain Tcl takes the Tcl file' tclsh "$T/run.tcl" "$M/share/modulefiles/recon/$version"
    has "$T/out" "PATH=$M/bin" 'and finds its place'
else
    skip 'no tclsh here'
fi

complete_line() { # complete_line WORD...: what the last word may become
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _recon "$1"; printf "%s\n" "${COMPREPLY[@]}"' \
        - "$M/share/bash-completion/completions/recon-submit" "$@" >"$T/out" 2>"$T/err"
}
complete_line recon-submit --dr
has "$T/out" '--dry-run' 'completion: an option of its own'
complete_line recon-submit --cpus
has "$T/out" '--cpus-per-task' 'completion: an option of sbatch'
complete_line recon-run --device = cu
has "$T/out" cuda 'completion: a device'
cd "$T" && mkdir -p runs/kitchen-1 && complete_line recon-submit --resume ru
has "$T/out" runs 'completion: a folder'
complete_line recon-pin ca
has "$T/out" capture 'completion: a verb'
finish

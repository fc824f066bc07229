#!/bin/sh
# recon-launch --task-prolog: only with RECON_PIN, only what differs, never a failure.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$T" || exit 99
umask 022
cat >p.pin <<'END'
version = 1; captured = { node = "login1"; time = "2026-11-30T14:00:00Z"; recon = "0.1.0"; umask = "0027"; };
variables = ( { name = "CUDA_HOME"; how = "set"; value = "/opt/cuda 13"; }, { name = "LD_LIBRARY_PATH"; how = "prepend"; value = "/opt/lib"; },
              { name = "LD_PRELOAD"; how = "unset"; }, { name = "ODD"; how = "set"; value = "a\nb"; }, { name = "SAME"; how = "set"; value = "x"; } );
objects = ( { role = "program"; path = "/bin/true"; why = "path"; size = 1L; mtime_ns = 1L; digest = "xxh3:0000000000000000"; } );
END
run() { env -u LD_LIBRARY_PATH -u CUDA_HOME "$@" recon-launch --task-prolog; }
tap 0 'without RECON_PIN' run -u RECON_PIN LD_PRELOAD=
[ ! -s out ] && ok 'nothing is said' || not_ok 'nothing is said' "$(cat "$T/out")"
tap 0 'with it' run RECON_PIN="$T/p.pin" SAME=x EXTRA=1
has "$T/out" 'export CUDA_HOME=/opt/cuda 13' 'a variable is set'
has "$T/out" 'export LD_LIBRARY_PATH=/opt/lib' 'a path is begun'
has "$T/out" "print recon: 'ODD' holds a line break" 'what cannot be said is told'
lacks "$T/out" 'SAME' 'what is right is left alone'
lacks "$T/out" 'unset' 'what is not there is not unset'
tap 0 'a path is there' run RECON_PIN="$T/p.pin" LD_LIBRARY_PATH=/mine
has "$T/out" 'export LD_LIBRARY_PATH=/opt/lib:/mine' 'it is prepended'
tap 0 'a second time' run RECON_PIN="$T/p.pin" LD_LIBRARY_PATH=/opt/lib:/mine CUDA_HOME='/opt/cuda 13' SAME=x ODD='a
b'
[ ! -s "$T/out" ] && ok 'twice is once' || not_ok 'twice is once' "$(cat "$T/out")"
tap 0 'a pin that is not there' run RECON_PIN="$T/none.pin"
has "$T/out" 'print recon: ' 'is told in the output'
echo 'version = ' >bad.pin
tap 0 'a pin that is damaged' run RECON_PIN="$T/bad.pin"
has "$T/out" 'print recon: ' 'is told in the output'
# of variants, the variables of the body that fits this node
body() { # NAME ISA PROGRAM
    cat <<END
  name = "$1"; requires = { cpu_isa = "$2"; };
  variables = ( { name = "MY_HOME"; how = "set"; value = "/opt/$1"; }, { name = "LD_LIBRARY_PATH"; how = "prepend"; value = "/opt/$1/lib"; } );
  objects = ( { role = "program"; path = "$3"; why = "path"; size = 1L; mtime_ns = 1L; digest = "xxh3:0000000000000000"; } );
END
}
{
    echo 'version = 1; captured = { node = "login1"; time = "2026-11-30T14:00:00Z"; recon = "0.1.0"; umask = "0027"; };'
    body plain x86-64 /bin/true
    echo "variants = ( {"; body gone x86-64-v3 /opt/gone; echo '}, {'; body second x86-64-v2 /bin/true; echo '} );'
} >v.pin
tap 0 'a pin with variants' run RECON_PIN="$T/v.pin"
has "$T/out" 'export MY_HOME=/opt/second' 'the variables of the most specific body that fits'
has "$T/out" 'export LD_LIBRARY_PATH=/opt/second/lib' 'its path'
lacks "$T/out" '/opt/plain' 'and none of another one'
tap 0 'the same from its own' run RECON_PIN="$T/v.pin" MY_HOME=/opt/second LD_LIBRARY_PATH=/opt/second/lib
[ ! -s "$T/out" ] && ok 'twice is once with variants' || not_ok 'twice is once with variants' "$(cat "$T/out")"
finish

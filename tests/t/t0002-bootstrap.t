#!/bin/sh
# The test command's closing line tells the truth, and the demo leaves folders alone that are not its own.
. "${abs_top_srcdir:?}/tests/lib.sh"
[ -x "$abs_top_srcdir/bootstrap" ] || skip_all 'no bootstrap here'

# a make that does nothing but what the test wants, in place of the build
mkdir "$T/bin" "$T/build" "$T/src"
cp "$abs_top_srcdir/bootstrap" "$T/src/"
# as after a build: nothing is older than what it is made from
touch -d '2020-01-01' "$T/src/configure.ac" "$T/src/Makefile.am"
touch -d '2020-01-02' "$T/src/configure" "$T/src/Makefile.in"
touch "$T/build/Makefile"
for p in apt-get dpkg-query; do printf '#!/bin/sh\necho ok installed\n' >"$T/bin/$p"; chmod +x "$T/bin/$p"; done
fake_make() { # fake_make 'shell text when check is made'
    printf '#!/bin/sh\ncase " $* " in *" check "*) %s ;; esac\n' "$1" >"$T/bin/make"
    chmod +x "$T/bin/make"
}
check() { tap "$1" "$2" env PATH="$T/bin:$PATH" BUILD="$T/build" "$T/src/bootstrap" check; }

echo ':test-result: PASS old' >"$T/build/old.trs"
fake_make 'exit 2'
check 1 'tests that do not build fail'
has "$T/out" '0 passed, 1 failed, 0 skipped' 'and results of an earlier run do not count'
fake_make "printf ':test-result: PASS a\n:test-result: SKIP b\n' >$T/build/a.trs"
check 0 'passed tests pass'
has "$T/out" '1 passed, 0 failed, 1 skipped' 'and are counted'
fake_make "printf ':test-result: PASS a\n:test-result: FAIL b\n' >$T/build/a.trs; exit 1"
check 1 'a failed test fails'
has "$T/out" '1 passed, 1 failed, 0 skipped' 'and is counted once'

mkdir "$T/mine"; echo precious >"$T/mine/file"
tap 73 'the demo refuses a folder with other things in it' "$abs_top_srcdir/examples/demo" "$abs_top_builddir" "$T/mine"
has "$T/mine/file" precious 'which stays as it was'
finish

# RECON_FLAGS: warnings, hardening, sanitizer, coverage, fuzzing.
# Gives WARN_CFLAGS HARDEN_CFLAGS HARDEN_LDFLAGS SAN_CFLAGS COV_FLAGS FUZZ_CFLAGS STATIC_LDFLAGS.
AC_DEFUN([RECON_FLAGS], [
  WARN_CFLAGS="-Wall -Wextra -Wshadow -Wformat=2 -Wvla -Wundef -Wwrite-strings"
  WARN_C_ONLY="-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition"
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors (CI)])],
    [], [enable_werror=no])
  AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])

  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer@<:@=LIST@:>@], [address,undefined (default of yes) or thread])],
    [], [enable_sanitizer=no])
  AS_IF([test "x$enable_sanitizer" = xyes], [enable_sanitizer=address,undefined])
  SAN_CFLAGS=
  AS_IF([test "x$enable_sanitizer" != xno], [
    SAN_CFLAGS="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer -fno-sanitize-recover=all"
    save_CFLAGS=$CFLAGS; CFLAGS="$CFLAGS $SAN_CFLAGS"
    AC_MSG_CHECKING([whether -fsanitize=$enable_sanitizer links])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no]); AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer: the compiler cannot link it])])
    CFLAGS=$save_CFLAGS])
  AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])

  AC_ARG_ENABLE([coverage], [AS_HELP_STRING([--enable-coverage], [instrument for gcov])],
    [], [enable_coverage=no])
  COV_FLAGS=
  AS_IF([test "x$enable_coverage" = xyes], [COV_FLAGS="--coverage -fprofile-update=atomic"; CFLAGS="$CFLAGS -O0"])

  AC_ARG_ENABLE([fuzzing],
    [AS_HELP_STRING([--enable-fuzzing], [build the libFuzzer targets of tests/fuzz (CC=clang)])],
    [], [enable_fuzzing=no])
  FUZZ_CFLAGS=
  AS_IF([test "x$enable_fuzzing" = xyes], [
    FUZZ_CFLAGS="-fsanitize=fuzzer-no-link"
    save_CFLAGS=$CFLAGS; CFLAGS="$CFLAGS $FUZZ_CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [],
      [AC_MSG_ERROR([--enable-fuzzing needs clang: configure CC=clang --enable-fuzzing])])
    CFLAGS=$save_CFLAGS])
  AM_CONDITIONAL([FUZZING], [test "x$enable_fuzzing" = xyes])

  # _FORTIFY_SOURCE wants optimisation and conflicts with sanitizers and -O0
  HARDEN_CFLAGS="-fPIC -fstack-protector-strong -fstack-clash-protection"
  HARDEN_LDFLAGS="-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack"
  AS_IF([test "x$enable_sanitizer" = xno && test "x$enable_coverage" = xno && test "x$enable_fuzzing" = xno],
    [HARDEN_CFLAGS="$HARDEN_CFLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])
  # the launcher and recon-check are static-pie; a sanitizer needs the dynamic loader
  STATIC_LDFLAGS="-static-pie"
  PIE_LDFLAGS="-pie"
  AS_IF([test "x$enable_sanitizer" != xno || test "x$enable_fuzzing" = xyes], [STATIC_LDFLAGS="-pie"])

  # around libraries that a program takes in, so that it starts where they are not installed (automake refuses them plain)
  LIBS_STATIC="-Wl,-Bstatic"
  LIBS_DYNAMIC="-Wl,-Bdynamic"
  AC_SUBST([LIBS_STATIC]) AC_SUBST([LIBS_DYNAMIC])

  AC_SUBST([WARN_CFLAGS]) AC_SUBST([WARN_C_ONLY]) AC_SUBST([SAN_CFLAGS]) AC_SUBST([COV_FLAGS])
  AC_SUBST([FUZZ_CFLAGS]) AC_SUBST([HARDEN_CFLAGS]) AC_SUBST([HARDEN_LDFLAGS])
  AC_SUBST([STATIC_LDFLAGS]) AC_SUBST([PIE_LDFLAGS])
])

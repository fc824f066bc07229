# Missing libraries are gathered and told together, each with the packages that bring it.
# RECON_LIB(VAR, HEADER, LIBRARY, FUNCTION, DEBIAN, FEDORA, SPACK): sets VAR_LIBS.
AC_DEFUN([RECON_LIB], [
  save_LIBS=$LIBS
  have_[]$1=no
  AC_CHECK_HEADER([$2], [AC_CHECK_LIB([$3], [$4], [have_[]$1=yes])])
  LIBS=$save_LIBS
  AS_IF([test "x$have_[]$1" = xyes], [$1_LIBS="-l$3"],
    [recon_missing="$recon_missing
  $3: Debian $5, Fedora $6, Spack $7"])
  AC_SUBST([$1_LIBS])
])

AC_DEFUN([RECON_DEPENDENCIES], [
  recon_missing=
  AX_RECON_PROG([pkg-config], [$PKG_CONFIG], [pkg-config], [pkgconf-pkg-config], [pkgconf])
  RECON_LIB([CONFIG], [libconfig.h], [config], [config_read_string], [libconfig-dev], [libconfig-devel], [libconfig])
  RECON_LIB([Z], [zlib.h], [z], [inflate], [zlib1g-dev], [zlib-devel], [zlib])
  RECON_LIB([ELF], [libelf.h], [elf], [elf_begin], [libelf-dev], [elfutils-libelf-devel], [elfutils])
  RECON_LIB([JANSSON], [jansson.h], [jansson], [json_dumps], [libjansson-dev], [jansson-devel], [jansson])
  RECON_LIB([XXHASH], [xxhash.h], [xxhash], [XXH3_64bits], [libxxhash-dev], [xxhash-devel], [xxhash])
  RECON_LIB([HWLOC], [hwloc.h], [hwloc], [hwloc_topology_init], [libhwloc-dev], [hwloc-devel], [hwloc])
  RECON_LIB([SPNG], [spng.h], [spng], [spng_ctx_new], [libspng-dev], [libspng-devel], [libspng])
  RECON_LIB([TURBOJPEG], [turbojpeg.h], [turbojpeg], [tjInitDecompress], [libturbojpeg0-dev], [turbojpeg-devel], [libjpeg-turbo])
  # C++ names in findings: optional, GCC's own archive
  AC_CHECK_LIB([supc++], [__gcclibcxx_demangle_callback],
    [AC_DEFINE([HAVE_SUPCXX], [1], [Define to 1 if libsupc++ demangles C++ names.]) SUPCXX_LIBS=-lsupc++], [SUPCXX_LIBS=])
  AC_SUBST([SUPCXX_LIBS])
  # compressed HIP bundles: optional, the archive too, since static-pie programs link it
  ZSTD_LIBS=
  AC_CHECK_HEADER([zstd.h], [save_LIBS=$LIBS; LIBS="-l:libzstd.a $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <zstd.h>]], [[return (int)ZSTD_versionNumber();]])],
      [AC_DEFINE([HAVE_ZSTD], [1], [Define to 1 if libzstd is there.]) ZSTD_LIBS=-l:libzstd.a])
    LIBS=$save_LIBS])
  AC_SUBST([ZSTD_LIBS])
  # Small libraries are linked statically into every program: the wrong LD_LIBRARY_PATH, which recon is there to find,
  # must not keep recon itself from starting. Archives that some distributions leave out are told.
  CONFIG_LIBS=-l:libconfig.a; JANSSON_LIBS=-l:libjansson.a; XXHASH_LIBS=-l:libxxhash.a
  ELF_LIBS="-l:libelf.a -l:libz.a"
  AC_MSG_CHECKING([whether a static-pie program links with libelf.a and its kin])
  save_LIBS=$LIBS; save_LDFLAGS=$LDFLAGS; save_CFLAGS=$CFLAGS
  LIBS="$ELF_LIBS $CONFIG_LIBS $JANSSON_LIBS $XXHASH_LIBS"; LDFLAGS="$LDFLAGS $STATIC_LDFLAGS"; CFLAGS="$CFLAGS -fPIE"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <libelf.h>
#include <jansson.h>]], [[return (int)elf_version(EV_CURRENT) + (json_null() == 0);]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     recon_missing="$recon_missing
  static archives of libelf, zlib, libconfig, jansson, xxhash (recon-launch is static-pie): Debian: in the -dev packages, Fedora: build them with Spack, Spack: libs=shared,static"])
  LIBS=$save_LIBS; LDFLAGS=$save_LDFLAGS; CFLAGS=$save_CFLAGS
  # unit tests
  PKG_CHECK_MODULES([CMOCKA], [cmocka >= 1.1], [have_cmocka=yes], [have_cmocka=no])
  AM_CONDITIONAL([HAVE_CMOCKA], [test "x$have_cmocka" = xyes])
  AS_IF([test "x$have_cmocka" = xno],
    [AC_MSG_WARN([cmocka not found: no unit tests (Debian libcmocka-dev, Fedora libcmocka-devel, Spack cmocka)])])
])

# AX_RECON_PROG(NAME, VALUE, DEBIAN, FEDORA, SPACK)
AC_DEFUN([AX_RECON_PROG], [
  AS_IF([test -z "$2"], [recon_missing="$recon_missing
  $1: Debian $3, Fedora $4, Spack $5"])
])

# RECON_WITH_SLURM: --without-slurm leaves out the libslurm backend (the sbatch commands still serve).
AC_DEFUN([RECON_WITH_SLURM], [
  AC_ARG_WITH([slurm], [AS_HELP_STRING([--without-slurm], [leave out the libslurm backend])],
    [], [with_slurm=yes])
  have_slurm=no
  AS_IF([test "x$with_slurm" != xno], [
    AS_IF([test "x$with_slurm" != xyes], [CPPFLAGS="$CPPFLAGS -I$with_slurm/include"; LDFLAGS="$LDFLAGS -L$with_slurm/lib"])
    AC_CHECK_HEADER([slurm/slurm.h], [
      save_LIBS=$LIBS
      AC_CHECK_LIB([slurm], [slurm_submit_batch_job], [have_slurm=yes; SLURM_LIBS=-lslurm])
      LIBS=$save_LIBS])
    AS_IF([test "x$have_slurm" = xno], [recon_missing="$recon_missing
  libslurm (or configure --without-slurm): Debian libslurm-dev, Fedora slurm-devel, Spack slurm"])])
  AC_SUBST([SLURM_LIBS])
  AM_CONDITIONAL([HAVE_SLURM], [test "x$have_slurm" = xyes])
  AS_IF([test "x$have_slurm" = xyes], [AC_DEFINE([HAVE_SLURM], [1], [Define if the libslurm backend is built.])
    # headers from 22.05 to 26.05: what changed since the first
    AC_CHECK_DECLS([slurm_get_errno, ESLURM_ERROR_ON_DESC_TO_RECORD_COPY], [], [], [[
      #include <slurm/slurm.h>
      #include <slurm/slurm_errno.h>]])
    AC_CHECK_MEMBERS([submit_response_msg_t.job_id], [], [], [[#include <slurm/slurm.h>]])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <slurm/slurm.h>]],
      [[job_info_msg_t *m; slurm_step_id_t id = { 0 }; return slurm_load_job(&m, id, 0);]])],
      [AC_DEFINE([HAVE_SLURM_LOAD_JOB_BY_STEP], [1], [Define if slurm_load_job takes a step id.])])
  ])
])

AC_DEFUN([RECON_DEPENDENCIES_REPORT], [
  AS_IF([test -n "$recon_missing"],
    [AC_MSG_ERROR([missing, with the packages that bring it:$recon_missing
On Debian and Ubuntu './bootstrap deps' installs all of them.])])
])

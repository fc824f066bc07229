# RECON_PROG_NVCC: --with-cuda[=DIR|no]; NVCC, NVCC_GENCODE, CUDA_LIBS, HAVE_CUDA.
# Default code: of each major architecture that this nvcc knows from sm_75 the lowest SASS, which all GPUs of that major version run (CUDA
# C++ programming guide, "Binary Compatibility"), and PTX of the highest.
AC_DEFUN([RECON_PROG_NVCC], [
  AC_ARG_VAR([NVCC], [nvcc compiler])
  AC_ARG_VAR([NVCCFLAGS], [flags for nvcc])
  AC_ARG_VAR([NVCC_GENCODE], [-gencode list (default: the lowest SASS of each major architecture from sm_75, PTX of the highest)])
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR|no@:>@], [build the CUDA kernels (default: when nvcc is found)])],
    [], [with_cuda=auto])
  AS_CASE([$with_cuda],
    [no], [NVCC=],
    [auto|yes], [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])
  AS_IF([test "x$with_cuda" != xno && test "x$with_cuda" != xauto && test -z "$NVCC"],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: no nvcc in PATH or in $with_cuda/bin (Debian nvidia-cuda-toolkit, Fedora cuda, Spack cuda)])])
  AS_IF([test -n "$NVCC"], [
    nvcc_real=`readlink -f "$NVCC"`
    CUDA_ROOT=`AS_DIRNAME(["$nvcc_real"])`
    CUDA_ROOT=`AS_DIRNAME(["$CUDA_ROOT"])`
    CUDA_LIBS="-L$CUDA_ROOT/lib64 -lcudart -lstdc++"
    AC_MSG_CHECKING([for the architectures of $NVCC])
    recon_archs=`"$NVCC" --list-gpu-code 2>/dev/null | sed -n 's/^sm_\(@<:@0-9@:>@*\)$/\1/p' | sort -n -u | awk '$[]1 >= 75 && int($[]1 / 10) != major { major = int($[]1 / 10); print }'`
    AS_IF([test -z "$recon_archs"], [recon_archs="75 80"])
    AS_IF([test -z "$NVCC_GENCODE"], [
      for a in $recon_archs; do
        NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_$a,code=sm_$a"; recon_top=$a
      done
      NVCC_GENCODE="$NVCC_GENCODE -gencode arch=compute_$recon_top,code=compute_$recon_top"])
    AC_MSG_RESULT([`echo $recon_archs`])
    AC_DEFINE([HAVE_CUDA], [1], [Define if the CUDA kernel module is built.])])
  AC_SUBST([CUDA_LIBS]) AC_SUBST([CUDA_ROOT])
  AM_CONDITIONAL([HAVE_CUDA], [test -n "$NVCC"])
])

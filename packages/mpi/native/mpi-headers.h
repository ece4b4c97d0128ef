#pragma once

// Not every mpicxx links the C++ bindings of old MPI libraries. Without these macros, loading fails with an undefined
// symbol.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#define SKEIN_TEXT_OF(value) #value
#define SKEIN_TEXT(value) SKEIN_TEXT_OF(value)

// Both MPI families define MPI_VERSION; these macros distinguish the families.
#if defined(OPEN_MPI)
#define SKEIN_MPI_FAMILY "open-mpi"
#define SKEIN_MPI_VERSION SKEIN_TEXT(OMPI_MAJOR_VERSION) "." SKEIN_TEXT(OMPI_MINOR_VERSION) "." SKEIN_TEXT(OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define SKEIN_MPI_FAMILY "mpich"
#define SKEIN_MPI_VERSION MPICH_VERSION
#else
#error "this mpi.h belongs to neither Open MPI nor MPICH (nor a library derived from MPICH)"
#endif

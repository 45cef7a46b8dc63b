/* regions.c with Kokkos, which is C++. */
#define KOKKOS
#include "regions.c"

/* regions.c with Kokkos or Caliper, which are C++. */
#ifndef CALIPER
#define KOKKOS
#endif
#include "regions.c"

/* hybrid.c in C++. */
#include "hybrid.c"

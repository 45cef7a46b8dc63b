/* Prints the return addresses of the calls that led to here(), the innermost first, one a line in
 * hexadecimal. Linked without PIE, so that they are those of the file. The innermost call is in line 24,
 * in a function that the compiler moves into exchange(), which main() calls in line 35. With
 * -DHERE_ONLY -Dhere=here_ it is here() for a program in Fortran. */
#include <execinfo.h>
#include <stdio.h>

__attribute__((noinline)) void here(void)
{
    void *addresses[32];
    int number = backtrace(addresses, 32);
    /* The first is in here(). */
    for (int at = 1; at < number; at++)
        printf("%lx\n", (unsigned long)addresses[at]);
}

#ifndef HERE_ONLY


static int received;

static inline __attribute__((always_inline)) void receive(void)
{
    here();
    received++;
}

__attribute__((noinline)) static void exchange(void)
{
    receive();
}

int main(void)
{
    exchange();
    return received != 1;
}
#endif

/* Functions of which glibc 2.31 has a newer version than 2.17, under the version before: the linker makes calls of
 * NAME calls of __wrap_NAME (--wrap). log and pow got new versions in 2.29, when they ceased to call matherr. */

#ifdef __x86_64__
#define BEFORE "GLIBC_2.2.5"
#else
#define BEFORE "GLIBC_2.17"
#endif

double log_before(double);
double pow_before(double, double);
__asm__(".symver log_before, log@" BEFORE);
__asm__(".symver pow_before, pow@" BEFORE);

double __wrap_log(double x) { return log_before(x); }
double __wrap_pow(double x, double y) { return pow_before(x, y); }

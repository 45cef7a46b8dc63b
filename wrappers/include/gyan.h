/* Phases of a program, for gyan, in C and C++.
 *
 *     #include <gyan.h>
 *
 *     gyan_phase_begin("solve");
 *     ...
 *     gyan_phase_end();
 *
 * Under gyan (preloaded, or linked with -lgyan) the profile keeps apart what happens in each phase.
 * Without gyan both functions do nothing, and nothing needs to be linked for them; if the C library
 * has dlsym in a separate library (glibc before 2.34), link with -ldl. For a program that contains libgyan.a define
 * GYAN_STATIC.
 *
 * A phase that begins inside another has the outer name in front, "solve/exchange", and its numbers do not
 * count for the outer phase. gyan_phase_end ends the phase that began last. Phases belong to the process, not
 * to a thread: let only one of several threads begin and end them. Before MPI starts and after it has ended
 * both functions do nothing.
 */
#ifndef GYAN_H
#define GYAN_H

#ifndef GYAN_STATIC
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef GYAN_STATIC

extern void gyan_phase_begin(const char *name);
extern void gyan_phase_end(void);

#else

/* The labels keep these apart from libgyan's functions of the same names, which they look for. */
static __inline__ void gyan_phase_begin(const char *name) __asm__("gyan_h_phase_begin");
static __inline__ void gyan_phase_end(void) __asm__("gyan_h_phase_end");

/* Why not by weak references: in a program that is linked with -no-pie GNU ld and gold make one null
 * for good, also when libgyan is preloaded later; and where libgyan was there at link time alone, gold
 * makes it a jump to null. */
static __inline__ void gyan_h_no_begin(const char *name) { (void)name; }
static __inline__ void gyan_h_no_end(void) {}

static __inline__ void *gyan_h_find(const char *symbol)
{
    /* RTLD_DEFAULT, which dlfcn.h has only with _GNU_SOURCE. */
    void *found = dlsym((void *)0, symbol);
    if (!found)
        (void)dlerror(); /* So that the program does not take it for an error of its own. */
    return found;
}

static __inline__ void gyan_phase_begin(const char *name)
{
    /* One word for both "looked for" and "found", so threads may race for it. */
    static void (*known)(const char *);
    void (*begin)(const char *);
    __atomic_load(&known, &begin, __ATOMIC_RELAXED);
    if (!begin) {
        begin = __extension__(void (*)(const char *)) gyan_h_find("gyan_phase_begin");
        if (!begin)
            begin = gyan_h_no_begin;
        __atomic_store(&known, &begin, __ATOMIC_RELAXED);
    }
    begin(name);
}

static __inline__ void gyan_phase_end(void)
{
    static void (*known)(void);
    void (*end)(void);
    __atomic_load(&known, &end, __ATOMIC_RELAXED);
    if (!end) {
        end = __extension__(void (*)(void)) gyan_h_find("gyan_phase_end");
        if (!end)
            end = gyan_h_no_end;
        __atomic_store(&known, &end, __ATOMIC_RELAXED);
    }
    end();
}

#endif

#ifdef __cplusplus
}
#endif

#endif

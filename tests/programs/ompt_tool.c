/* A tool for OpenMP that is not gyan: it says so when a runtime starts it, and counts regions until the runtime ends. */
#include <omp-tools.h>
#include <stdio.h>

static int regions;

static void begins(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *region, unsigned threads, int flags,
                   const void *address)
{
    regions++;
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data)
{
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    set(ompt_callback_parallel_begin, (ompt_callback_t)begins);
    return 1;
}

static void finalize(ompt_data_t *data)
{
    printf("another tool saw regions: %s\n", regions > 0 ? "yes" : "no");
}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    return &result;
}

/* A library with those functions of Caliper (cali.h and Annotation.h, 2.12) by which programs name regions. No package registry
 * has Caliper itself. At the end of the process it prints how many regions began, and whether each one ended in its turn. */
#include "caliper.hpp"

#include <mutex>
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

static std::mutex lock;
static long begun, wrong;
static thread_local std::vector<std::string> regions;

static void begins(const char *name)
{
    std::lock_guard<std::mutex> held(lock);
    begun++;
    regions.push_back(name);
}

/* `name`: null where the program does not say it again. */
static void ends(const char *name)
{
    std::lock_guard<std::mutex> held(lock);
    if (regions.empty() || (name != NULL && regions.back() != name))
        wrong++;
    else
        regions.pop_back();
}

void cali_begin_region(const char *name) { begins(name); }
void cali_end_region(const char *name) { ends(name); }
void cali_begin_phase(const char *name) { begins(name); }
void cali_end_phase(const char *name) { ends(name); }
void cali_begin_comm_region(const char *name) { begins(name); }
void cali_end_comm_region(const char *name) { ends(name); }

cali::Function::Function(const char *name) { begins(name); }
cali::Function::~Function() { ends(NULL); }
cali::ScopeAnnotation::ScopeAnnotation(const char *name) { begins(name); }
cali::ScopeAnnotation::~ScopeAnnotation() { ends(NULL); }

__attribute__((destructor)) static void is_over(void)
{
    printf("caliper: %ld regions, %ld wrong, %zu open\n", begun, wrong, regions.size());
}

/* What cali.h and Annotation.h of Caliper 2.12 declare, of functions that name regions. */
#ifndef CALIPER_HPP
#define CALIPER_HPP

extern "C" {
void cali_begin_region(const char *name);
void cali_end_region(const char *name);
void cali_begin_phase(const char *name);
void cali_end_phase(const char *name);
void cali_begin_comm_region(const char *name);
void cali_end_comm_region(const char *name);
}

namespace cali
{
class Function
{
  public:
    Function(const char *name);
    ~Function();
};

class ScopeAnnotation
{
  public:
    explicit ScopeAnnotation(const char *name);
    ~ScopeAnnotation();
};
} // namespace cali

#endif

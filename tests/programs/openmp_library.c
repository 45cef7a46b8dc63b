/* A library with a parallel region, for openmp_library.py. */

double add_up(int count)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < count; i++) {
        sum += i;
    }
    return sum;
}

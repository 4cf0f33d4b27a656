#include "late_library.hpp"

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

double late_mix(int a, double b, long c, double d, int e, double f, int g, float h, int i, double j,
                const char* k, double l, double m, double n, long on_the_stack, double too) {
  double sum = 0, place = 1;
  for (double x : {double(a), b, double(c), d, double(e), f, double(g), double(h), double(i), j,
                   double(k[0] - '0'), l, m, n, double(on_the_stack), too})
    sum += place++ * x; // no two arguments can change places
  return sum;
}

int late_print(char* to, std::size_t room, const char* format, ...) {
  va_list more;
  va_start(more, format);
  const int n = std::vsnprintf(to, room, format, more);
  va_end(more);
  return n;
}

namespace late {

large make_large(int from, const std::string& text) {
  large made{{}, text + "!"};
  for (auto& x : made.numbers)
    x = from++;
  return made;
}

void refuse(const std::string& why) { throw std::runtime_error(why); }

} // namespace late

#pragma once
// Functions whose arguments and values travel in every way there is.

#include <string>

extern "C" {
double late_mix(int a, double b, long c, double d, int e, double f, int g, float h, int i, double j,
                const char* k, double l, double m, double n, long on_the_stack, double too);
int late_print(char* to, std::size_t room, const char* format, ...);
}

namespace late {

struct large {
  double numbers[9];
  std::string text;
};

large make_large(int from, const std::string& text);
[[noreturn]] void refuse(const std::string& why);

} // namespace late

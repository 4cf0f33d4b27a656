#include "searchers/portable_math.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::searchers {
namespace {

/// exp by Shibata's method (ISC 2010): halve the argument four times, take the Taylor series, square back.
/// |x| is small here.
double portable_exp(double x) {
  constexpr double log2_of_e = 1.4426950408889634073599246810018920;
  constexpr double ln2_upper = 0.69314718055966295651160180568695068359375;
  constexpr double ln2_lower = 0.28235290563031577122588448175013436025525412068e-12;
  constexpr double taylor[] = {2.4801587301587301587e-5,
                               1.9841269841269841270e-4,
                               1.3888888888888888889e-3,
                               8.3333333333333333333e-3,
                               4.1666666666666666667e-2,
                               1.6666666666666666667e-1,
                               0.5,
                               1.0};
  double exponent = std::nearbyint(log2_of_e * x);
  x = std::fma(-exponent, ln2_upper, x);
  x = std::fma(-exponent, ln2_lower, x) * 0.0625;
  double sum = taylor[0];
  for (int i = 1; i < 8; ++i)
    sum = std::fma(sum, x, taylor[i]);
  x *= sum;
  for (int i = 0; i < 3; ++i)
    x *= x + 2.0;
  return std::ldexp(std::fma(x, x + 2.0, 1.0), static_cast<int>(exponent));
}

} // namespace

/// The method of FreeBSD's e_log.c: x = 2^k (1 + f), log(1 + f) by its minimax polynomial in s = f / (2 + f).
double portable_log(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  constexpr double l1 = 6.666666666666735130e-01, l2 = 3.999999999940941908e-01,
                   l3 = 2.857142874366239149e-01, l4 = 2.222219843214978396e-01,
                   l5 = 1.818357216161805012e-01, l6 = 1.531383769920937332e-01,
                   l7 = 1.479819860511658591e-01;
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);
  if (fraction < std::sqrt(2.0) / 2) {
    fraction *= 2;
    --exponent;
  }
  double f = fraction - 1, k = exponent;
  double s = f / (2 + f), s2 = s * s, s4 = s2 * s2;
  double odd = s2 * (l1 + s4 * (l3 + s4 * (l5 + s4 * l7)));
  double even = s4 * (l2 + s4 * (l4 + s4 * l6));
  double half_square = 0.5 * f * f;
  return k * ln2_high - ((half_square - (s * (half_square + (odd + even)) + k * ln2_low)) - f);
}

/// Takes the fraction of y by exp and log, the whole part by repeated squaring on mantissa and exponent.
double portable_pow(double x, double y) {
  if (y == 0 || x == 1)
    return 1;
  if (y == 1)
    return x;
  if (y == 0.5)
    return std::sqrt(x);
  if (y == -0.5)
    return 1 / std::sqrt(x);
  double whole = 0;
  double part = std::modf(std::fabs(y), &whole);
  if (whole >= 0x1p63 || !std::isfinite(x))
    return std::pow(x, y);
  double mantissa = 1;
  std::int64_t exponent = 0;
  if (part != 0) {
    if (part > 0.5) {
      part -= 1;
      whole += 1;
    }
    mantissa = portable_exp(part * portable_log(x));
  }
  int step_exponent = 0;
  double step = std::frexp(x, &step_exponent);
  std::int64_t step_power = step_exponent;
  for (auto left = static_cast<std::int64_t>(whole); left != 0; left >>= 1) {
    if (step_power < -4096 || step_power > 4096) { // overflows or underflows, whatever follows
      exponent += step_power;
      break;
    }
    if (left & 1) {
      mantissa *= step;
      exponent += step_power;
    }
    step *= step;
    step_power *= 2;
    if (step < 0.5) {
      step += step;
      --step_power;
    }
  }
  if (y < 0) {
    mantissa = 1 / mantissa;
    exponent = -exponent;
  }
  return std::ldexp(mantissa, static_cast<int>(exponent));
}

} // namespace troupe::searchers

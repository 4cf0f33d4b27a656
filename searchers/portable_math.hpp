#pragma once
// Logarithm and power with the same bits on every machine and C library, so that a search replays anywhere.
// They have the bits of the Go runtime on x86-64, which made Determined's samples and tables.

namespace troupe::searchers {

double portable_log(double x);           ///< x > 0
double portable_pow(double x, double y); ///< x > 0

} // namespace troupe::searchers

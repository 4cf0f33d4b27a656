#pragma once
// The hyperparameter space of a search: the `hyperparameters` section, compiled once into dimensions.
//
// A point has one double for each dimension. For a number it is a coordinate in [0, 1] along the axis (a log
// axis is even in its exponent, an integer sits in the middle of its cell), for a categorical the index of
// the choice. Constants are not dimensions; `assemble` adds them again.

#include "model/result.hpp"
#include "model/value.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::searchers {

using point = std::vector<double>;

enum class axis { categorical, integer, real, logarithmic };

struct dimension {
  std::vector<std::string> path;
  axis kind = axis::real;
  double low = 0, high = 0; ///< of a real number; the range excludes `high`; exponents where logarithmic
  double base = 10;
  std::int64_t least = 0, most = 0; ///< of an integer; the range includes both
  std::int64_t count = 0;           ///< number of grid points; 0: not given
  std::vector<value> choices;

  bool categorical() const { return kind == axis::categorical; }
  /// Number of values; 0 where they cannot be counted.
  std::uint64_t values() const;
  value at(double coordinate) const;
  /// The coordinate of the same value that lies in the middle of its cell.
  double settle(double coordinate) const;
  double coordinate_of(const value& x) const;
  std::string name() const; ///< "a.b.c"

  // For a grid: 0 where the axis needs a count and has none.
  std::uint64_t grid_count() const;
  value grid_value(std::uint64_t index) const;
};

class space {
public:
  /// Compiles the section; appends every fault to `faults` as "hyperparameters.PATH: what, how to mend it".
  static space parse(const value& hyperparameters, std::vector<std::string>& faults);

  /// In the order of their paths; names are compared byte by byte, level by level.
  const std::vector<dimension>& dimensions() const { return dimensions_; }
  std::size_t size() const { return dimensions_.size(); }
  value assemble(std::span<const double> coordinates) const;
  value assemble(std::vector<value> values) const;
  /// The point of an assembled sample.
  point locate(const value& hparams) const;

  /// A uniform point that depends only on seed, stream, trial and dimension.
  point sample(std::uint64_t seed, std::uint64_t stream, std::uint64_t trial,
               std::uint64_t attempt = 0) const;
  double sample_dimension(std::size_t index, std::uint64_t bits) const;

  /// The number of points; 0 where it overflows 63 bits. With rising `index` the last dimension changes
  /// fastest.
  std::uint64_t grid_size() const;
  value grid_point(std::uint64_t index) const;

private:
  void add(const value& spec, std::vector<std::string>& path, value& skeleton,
           std::vector<std::string>& faults);
  std::vector<dimension> dimensions_;
  value skeleton_ = value::object(); ///< constants and nested objects
};

} // namespace troupe::searchers

// Lengths of training: {batches: N}, {records: N}, {epochs: N}, and plain numbers.

#include "model/config/shapes.hpp"

namespace troupe::config {
namespace {

bool has_one_unit(const node& x) {
  return x.entries.size() == 1 && (x.find("batches") || x.find("records") || x.find("epochs"));
}

void fill_length(schema_table& t, shape& s, double least) {
  s.kinds = map_bit;
  s.doc = "A length of training: a map with exactly one of batches, records and epochs.";
  auto count = integer(t, {.least = least});
  for (auto unit : {"batches", "records", "epochs"}) {
    auto k = quiet(unset(unit, count, std::string("The length in ") + unit + ".", unit));
    k.nullable = false;
    k.fallback.reset();
    s.keys.push_back(std::move(k));
  }
  rule one{"a length is a map with exactly one of batches, records and epochs",
           has_one_unit,
           "",
           need::always,
           {{"minProperties", 1}, {"maxProperties", 1}},
           "write {batches: 100}"};
  s.rules.push_back(one);
}

} // namespace

void add_lengths(schema_table& t) {
  fill_length(t, t.make("length"), 0);
  fill_length(t, t.make("check-positive-length"), 1);
  either(t, {integer(t, {.least = 0}), t.at("check-positive-length")}, "searcher-length");
}

} // namespace troupe::config

#pragma once
// Helpers to write the table with: `integer(t, {.least = 0})`, `optional("max_slots", ..., "...")`.

#include "model/config/schema.hpp"

#include <initializer_list>

namespace troupe::config {

constexpr unsigned bit(kind k) { return 1u << static_cast<unsigned>(k); }
constexpr unsigned text_bit = bit(kind::string), whole_bit = bit(kind::integer),
                   number_bit = bit(kind::number), flag_bit = bit(kind::boolean), list_bit = bit(kind::list),
                   map_bit = bit(kind::map);

struct range {
  std::optional<double> least = {}, above = {}, most = {};
};

shape_ref anything(schema_table& t);
shape_ref text(schema_table& t);
shape_ref boolean(schema_table& t);
shape_ref integer(schema_table& t, range r = {});
shape_ref number(schema_table& t, range r = {});
shape_ref one_of(schema_table& t, std::vector<value> allowed, std::string hint = {});
shape_ref list_of(schema_table& t, shape_ref items);
shape_ref map_of(schema_table& t, shape_ref values);
shape_ref any_map(schema_table& t);
shape_ref either(schema_table& t, std::vector<shape_ref> alternatives, std::string name = {});

/// A key with a default; null (the default default) means unset.
key given(std::string name, shape_ref what, value fallback, std::string doc, std::string unit = {});
key unset(std::string name, shape_ref what, std::string doc, std::string unit = {});
key required(std::string name, shape_ref what, std::string doc, std::string unit = {});
key to_run(key k);  ///< a run needs it
key quiet(key k);   ///< left out while unset
key ignored(key k); ///< accepted and dropped
key native(key k);  ///< Determined never had it; quiet

} // namespace troupe::config

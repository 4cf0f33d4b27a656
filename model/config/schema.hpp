#pragma once
// The one table of the experiment configuration: every key with its type, default, range and meaning. It
// gives the checks, the defaults, the merging, `explain`, the JSON Schema and the reference page.

#include "model/config/document.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::config {

struct shape;
using shape_ref = const shape*;

enum class need : std::uint8_t {
  no,
  always, ///< wherever its map is written, even in a template
  to_run, ///< once all layers are merged and the defaults are filled in
};

/// A key of a map.
struct key {
  std::string name;
  shape_ref what = nullptr;
  std::string doc;
  need needed = need::no;
  bool nullable = true;          ///< null means that the key is not given
  std::optional<value> fallback; ///< the default; a map's own keys add their defaults to it
  std::string unit;
  std::string since = "determined"; ///< "troupe": Determined never had the key
  bool quiet = false;               ///< whether a completed configuration leaves it out while it is not given
  bool ignored = false;             ///< accepted and dropped
  std::string example = {};         ///< text as in a file; empty: none
  std::optional<value> filled =
    {}; ///< `fallback` with the defaults within it; the table sets it once all parts exist

  bool is_forbidden() const; ///< whether it must not be given; the shape says why
};

/// A condition on a whole value, beyond the types of its parts.
struct rule {
  std::string message;
  bool (*holds)(const node&) = nullptr;
  std::string at; ///< the key whose place is shown; empty: the value itself
  need level = need::always;
  value as_json_schema; ///< for editors; null where JSON Schema cannot express it
  std::string hint;
};

enum class merging : std::uint8_t {
  replace,           ///< the higher layer's value
  by_key,            ///< maps: key by key
  of_one_kind,       ///< unions: key by key, without keys of another kind
  hyperparameter,    ///< nested maps by key; a hyperparameter is one value
  by_container_path, ///< the higher list, then those of the lower at other container paths
  by_name,           ///< log policies: by name, otherwise by pattern
  by_port,           ///< the higher list, then those of the lower at other ports
  lower_first,       ///< the lower list, then the higher one, which therefore wins at run time
  variables_last,    ///< the same for NAME=VALUE, without what the lower list says already
  higher_first,      ///< the higher list, then the lower one
  by_variable,       ///< NAME=VALUE: the lower list with the higher one's values, then its new names
  sorted_set,        ///< both lists, sorted, each once
  each_once,         ///< the higher list, then what the lower one adds
  pod,               ///< maps by key; lists of things with names by name; other lists replaced
};

struct member {
  std::string value; ///< value of the discriminator
  shape_ref what = nullptr;
  bool legacy = false; ///< whether it can be read, but not run
  std::string since = "determined";
};

/// What a value must be. Null is never accepted here: the key that holds the value says whether it may be
/// null.
struct shape {
  std::string name; ///< name of the schema, such as `bind-mount`; empty for a shape within another
  std::string doc;
  unsigned kinds = 0; ///< one bit for each accepted kind; 0: anything
  std::optional<double> least, above, most;
  std::vector<value> allowed; ///< if not empty, the value must be one of these
  std::string allowed_hint;
  std::string pattern, pattern_says; ///< for strings: the pattern for JSON Schema, and the text for people
  bool (*fits)(std::string_view) = nullptr; ///< decides the pattern
  std::vector<key> keys;                    ///< keys of a map
  bool open = false;                        ///< whether other keys are accepted as they are
  shape_ref items = nullptr;                ///< elements of a list
  shape_ref values = nullptr;               ///< values of a map with free keys
  bool null_values = false;                 ///< whether these values may be null
  std::string discriminator;                ///< the key that says which member a map is
  std::vector<member> members;
  std::vector<shape_ref> alternatives; ///< the one that accepts the value's kind is taken
  std::vector<rule> rules;
  merging merge = merging::replace;
  value standard; ///< for a list merged by name: elements that the platform adds to every list
  void (*shim)(value&) =
    nullptr;            ///< brings an older or shorter spelling into the one form of a configuration
  bool may_lack = true; ///< false where a run needs no key within
  bool may_fill = true; ///< false where no key within has a default
  std::vector<std::uint8_t>
    places; ///< for `find`: 1 + position in `keys`, by hash of the name; empty: not made yet

  bool takes(kind k) const { return kinds == 0 || (kinds >> static_cast<unsigned>(k) & 1u); }
  const key* find(std::string_view name) const;
  const member* member_named(std::string_view name) const;
};

/// The part of `s` that describes `x`: the member of a union, otherwise `s`.
const shape& narrowed(const shape& s, const node& x);
const shape& narrowed(const shape& s, const value& x);

class schema_table {
public:
  schema_table();
  schema_table(const schema_table&) = delete;
  schema_table& operator=(const schema_table&) = delete;

  /// Null where no schema has this name.
  shape_ref find(std::string_view name) const;
  const std::map<std::string, shape_ref, std::less<>>& named() const { return named_; }

  shape& make(std::string name = {}); ///< makes a shape, for the files that fill the table
  shape_ref at(std::string_view name) const;

private:
  /// Prepares once what checks and defaults would otherwise work out for every configuration.
  void finish();

  std::deque<shape> shapes_;
  std::map<std::string, shape_ref, std::less<>> named_;
};

/// The table; made at the first call, thread-safe.
const schema_table& schemas();

// The parts of the table, one file each, in the order in which they need one another.
void add_lengths(schema_table& t);
void add_hyperparameters(schema_table& t);
void add_policies(schema_table& t);
void add_searchers(schema_table& t);
void add_storage(schema_table& t);
void add_environment(schema_table& t);
void add_resources(schema_table& t);
void add_integrations(schema_table& t);
void add_experiment(schema_table& t);
void add_cluster(schema_table& t);
void add_master_and_agent(schema_table& t);
void add_cluster_file(schema_table& t);

} // namespace troupe::config

#pragma once
// A text as a tree with places. The YAML and JSON readers make it, and the checks read it.

#include "model/config/experiment_config.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::config {

/// Lines and columns count from 1; columns count characters, not bytes. 0 means no place.
struct place {
  int line = 0, column = 0;
  int file = 0; ///< number of the file, in a document that several files make
};

enum class kind : std::uint8_t { null, boolean, integer, number, string, list, map };

/// "a string", "an integer": used in messages.
const char* name_with_article(kind k);

struct entry;

/// One value of the text. Only the member that belongs to `type` has a meaning; `text` also keeps the
/// spelling of a plain scalar.
struct node {
  kind type = kind::null;
  bool flag = false; ///< value of a boolean
  place at;
  std::int64_t whole = 0;     ///< value of an integer
  double real = 0;            ///< value of a number, and of an integer beyond 64 bits
  std::string text;           ///< value of a string
  std::vector<node> items;    ///< elements of a list
  std::vector<entry> entries; ///< entries of a map, in the order of the text, no key twice

  bool is(kind k) const { return type == k; }
  /// A number without a fraction counts as an integer, as in JSON Schema.
  bool is_integer() const;
  double as_double() const { return type == kind::integer ? static_cast<double>(whole) : real; }
  const node* find(std::string_view key) const; ///< null where this is not a map or has no such key
  const entry* entry_of(std::string_view key) const;
};

struct entry {
  std::string key;
  place at;
  node what;
};

/// Bounds that hold for any text, so that reading takes bounded time and memory.
struct limits {
  std::size_t text_bytes = 4 << 20;
  std::size_t nodes = 500'000; ///< of the nodes after aliases are expanded
  int depth = 100;
};

struct document {
  node root;
  std::vector<diagnostic> faults; ///< `root` is complete only where there are none
  bool readable = true; ///< false where the text is not YAML (or JSON) at all, or exceeds the bounds
};

/// A longer list would not help.
constexpr std::size_t most_faults = 100;

/// Reads one YAML document or one JSON value; never throws. Copies aliases and applies merge keys (`<<`). A
/// key given twice is a fault at its second place; reading goes on after it.
document read_document(std::string_view text, std::string_view file, const limits& bound = {});

/// `read_document` chooses one of these.
document read_yaml(std::string_view text, std::string_view file, const limits& bound);
document read_json(std::string_view text, std::string_view file, const limits& bound);

value to_value(const node& x);
node to_node(const value& x); ///< makes a node without places

/// The way from the root to the place of a reader or a check; written out only for a fault.
class trail {
public:
  /// One step, which ends with the scope. `key` must outlive it.
  class guard {
  public:
    guard(trail& t, std::string_view key) : trail_(t) { t.steps_.push_back({key, no_index}); }
    guard(trail& t, std::size_t index) : trail_(t) { t.steps_.push_back({{}, index}); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() { trail_.steps_.pop_back(); }

  private:
    trail& trail_;
  };
  std::string text() const; ///< `a.b[2]`; a key with a dot or bracket is quoted: `a["b.c"]`
  std::string sibling(std::string_view key) const; ///< the same way with another last step
  /// Whether it leads to a secret, or into one: no fault may quote what stands there.
  bool leads_to_secret() const;

private:
  static constexpr std::size_t no_index = static_cast<std::size_t>(-1);
  struct step {
    std::string_view key;
    std::size_t index;
  };
  std::vector<step> steps_;
};

/// Takes the entry that `path` names out of its map, or the list that holds it; false where there is none.
bool remove_at(node& root, std::string_view path);

/// The part of `root` that `path` names; null where there is none.
const node* part_at(const node& root, std::string_view path);

/// The place of the deepest part of `root` that `path` names; a missing part has the place of its owner.
place place_of(const node& root, std::string_view path);

} // namespace troupe::config

#pragma once
// What Determined's streaming updates tell: projects, models and versions of models as they are, in the order
// of their changes, and what one subscriber has to hear of them. Pure.

#include "model/facts.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace troupe::api {

enum class updated { project, model, version };

/// A thing as it is now. `seq` counts the changes of all: the number of the fact, from 1; 0: it was always
/// there.
struct update_entry {
  std::uint64_t seq = 0;
  bool deleted = false;
  workspace_id workspace;
  std::uint64_t id = 0, parent = 0; ///< parent: of a version its model
  std::string owner;
  value shape;              ///< as the client's constructors take it, without `seq` and `user_id`
  bool with_others = false; ///< other versions, which moved with it, have the same `seq`, or had it
};

class update_book {
public:
  update_book();
  /// Fact `number` (from 0) of the stream "cluster".
  void take(const fact& x, std::uint64_t number);
  const std::map<std::pair<updated, std::uint64_t>, update_entry>& all() const { return all_; }
  /// What has changed after `seq`, in order.
  std::vector<std::pair<updated, std::uint64_t>> after(std::uint64_t seq) const;
  std::uint64_t newest() const { return by_seq_.empty() ? 0 : std::get<0>(*by_seq_.rbegin()); }

private:
  void put(updated kind, std::uint64_t id, update_entry made);
  std::map<std::pair<updated, std::uint64_t>, update_entry> all_;
  std::set<std::tuple<std::uint64_t, updated, std::uint64_t>>
    by_seq_; ///< number of the newest change, and whose
};

/// Number that a version of a model has among all versions; the API gives the same.
std::uint64_t version_number(model_id model, std::uint64_t version);

/// One client: what it wants, and what it has.
class update_subscription {
public:
  /// `user_id`: number of an account by its name; `sees`: whether the client may see a thing, asked for each
  /// message.
  struct world {
    std::function<std::uint64_t(const std::string&)> user_id;
    std::function<bool(updated, const update_entry&)> sees;
  };

  /// A message of the client replaces what it wanted; appends the begin of the answer, whose things come with
  /// `follow`. errc::invalid where it is no such message.
  result<void> subscribe(const std::string& message, const update_book& book, const world& in,
                         std::vector<std::string>& out);
  /// What is left of the answer, about `most` bytes of it; once it is complete, what has changed since.
  void follow(const update_book& book, const world& in, std::vector<std::string>& out,
              std::size_t most = std::size_t(-1));
  /// Whether the answer is complete, with what changed while it was told.
  bool is_answered() const { return !sync_ && !late_; }

private:
  struct filter {
    bool wanted = false;
    std::set<std::uint64_t> workspaces, ids, users, parents;
    std::uint64_t since = 0;
    std::set<std::uint64_t> has; ///< what the client has of the kind
  };
  bool matches(updated kind, const update_entry& x, const world& in) const;
  std::string upsert(updated kind, const update_entry& x, const world& in) const;

  std::map<updated, filter> filters_;
  std::uint64_t seen_ = 0;
  bool late_ = false;         ///< what changed during the answer is not told yet
  std::optional<value> sync_; ///< id of the message whose answer is not complete
  std::deque<std::tuple<std::uint64_t, updated, std::uint64_t>>
    due_; ///< what is left of the answer: change, kind and id of each thing, in order
};

/// "1,3-5" and its ids; at most 100,000. errc::invalid on anything else.
result<std::set<std::uint64_t>> read_ranges(const std::string& text);
std::string write_ranges(const std::set<std::uint64_t>& ids);

} // namespace troupe::api

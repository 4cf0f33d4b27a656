#pragma once
// What Determined's streaming updates tell: the present state of projects, models and versions of models, in
// the order of their changes, and the part of that which one subscriber has to hear. Pure.

#include "model/facts.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace troupe::api {

enum class updated { project, model, version };

/// The present state of a thing. `seq` is the number of its newest fact, from 1; 0: the thing was always
/// there.
struct update_entry {
  std::uint64_t seq = 0;
  bool deleted = false;
  workspace_id workspace;
  std::uint64_t id = 0, parent = 0; ///< parent: the model of a version
  std::string owner;
  value shape;              ///< the fields that the client's constructors take, without `seq` and `user_id`
  bool with_others = false; ///< versions that moved together with this one have or had the same `seq`
};

class update_book {
public:
  update_book();
  /// Takes fact `number` (from 0) of the stream "cluster".
  void take(const fact& x, std::uint64_t number);
  const std::map<std::pair<updated, std::uint64_t>, update_entry>& all() const { return all_; }
  /// The things that changed after `seq`, in the order of their changes.
  std::vector<std::pair<updated, std::uint64_t>> after(std::uint64_t seq) const;
  std::uint64_t newest() const { return by_seq_.empty() ? 0 : std::get<0>(*by_seq_.rbegin()); }

private:
  void put(updated kind, std::uint64_t id, update_entry made);
  std::map<std::pair<updated, std::uint64_t>, update_entry> all_;
  /// Number of each thing's newest change, and the thing's kind and id.
  std::set<std::tuple<std::uint64_t, updated, std::uint64_t>> by_seq_;
};

/// The number of a model's version among the versions of all models, as the API gives it, too.
std::uint64_t version_number(model_id model, std::uint64_t version);

/// One client: what it asked for, and what it has been told.
class update_subscription {
public:
  /// `user_id` gives the number of an account by its name. `sees` says whether the client may see a thing; it
  /// is asked for each message.
  struct world {
    std::function<std::uint64_t(const std::string&)> user_id;
    std::function<bool(updated, const update_entry&)> sees;
  };

  /// Takes a message of the client, which replaces what it asked for before. Appends the beginning of the
  /// answer to `out`; its things come with `follow`. Fails with errc::invalid where the message is not a
  /// subscription.
  result<void> subscribe(const std::string& message, const update_book& book, const world& in,
                         std::vector<std::string>& out);
  /// Appends about `most` bytes of the rest of the answer. Once the answer is complete, appends what has
  /// changed since.
  void follow(const update_book& book, const world& in, std::vector<std::string>& out,
              std::size_t most = std::size_t(-1));
  /// Whether the answer is complete, including what changed while it was sent.
  bool is_answered() const { return !sync_ && !late_; }

private:
  struct filter {
    bool wanted = false;
    std::set<std::uint64_t> workspaces, ids, users, parents;
    std::uint64_t since = 0;
    std::set<std::uint64_t> has; ///< ids of the kind that the client has
  };
  bool matches(updated kind, const update_entry& x, const world& in) const;
  std::string upsert(updated kind, const update_entry& x, const world& in) const;

  std::map<updated, filter> filters_;
  std::uint64_t seen_ = 0;
  bool late_ = false;         ///< the client does not know yet what changed during the answer
  std::optional<value> sync_; ///< id of the message whose answer is not complete
  /// The rest of the answer: number of the change, kind and id of each thing, in order.
  std::deque<std::tuple<std::uint64_t, updated, std::uint64_t>> due_;
};

/// Reads ids in the form "1,3-5", at most 100,000 of them. Fails with errc::invalid on anything else.
result<std::set<std::uint64_t>> read_ranges(const std::string& text);
std::string write_ranges(const std::set<std::uint64_t>& ids);

} // namespace troupe::api

#include "storage/store.hpp"

#include <array>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <variant>
#include <vector>

namespace troupe::storage {
namespace {

using table = std::map<std::string, std::string, std::less<>>;

struct contents {
  mutable std::mutex turn; ///< taken before `guard`, so that a stream of readers does not starve the writer
  mutable std::shared_mutex guard;
  std::array<table, family_count> tables;
  std::map<std::string, std::string, std::less<>> blobs;
};

class memory_cursor : public cursor {
public:
  memory_cursor(const table& of, std::string_view from, std::string_view until, direction towards)
      : first_(of.lower_bound(from)), last_(of.lower_bound(until)), at_(first_), towards_(towards) {
    if (!(from < until))
      last_ = at_ = first_;
    if (towards_ == direction::backward)
      at_ = last_;
  }
  bool valid() const override { return first_ != last_ && at_ != (forward() ? last_ : first_); }
  std::string_view key() const override { return here()->first; }
  std::string_view data() const override { return here()->second; }
  void next() override { forward() ? ++at_ : --at_; }
  result<void> status() const override { return {}; }

private:
  bool forward() const { return towards_ == direction::forward; }
  table::const_iterator here() const { return forward() ? at_ : std::prev(at_); }
  table::const_iterator first_, last_, at_; // going backward, at_ is one after the entry
  direction towards_;
};

/// Holds writers off while it lives, so that its contents do not change.
class memory_view : public view {
public:
  explicit memory_view(std::shared_ptr<const contents> of) : of_(std::move(of)) {
    std::lock_guard turn(of_->turn);
    held_ = std::shared_lock(of_->guard);
  }
  result<std::optional<std::string>> get(family where, std::string_view key) const override {
    const auto& t = of_->tables[static_cast<std::size_t>(where)];
    auto found = t.find(key);
    return found == t.end() ? std::optional<std::string>{} : std::optional{found->second};
  }
  std::unique_ptr<cursor> scan(family where, std::string_view from, std::string_view until,
                               direction towards) const override {
    return std::make_unique<memory_cursor>(of_->tables[static_cast<std::size_t>(where)], from, until,
                                           towards);
  }

private:
  std::shared_ptr<const contents> of_;
  std::shared_lock<std::shared_mutex> held_;
};

struct memory_batch : batch {
  struct change {
    family where;
    std::string key, data; ///< where a range is erased, `data` is its end
    enum { put, erase, erase_range } how = put;
  };
  void put(family where, std::string_view key, std::string_view data) override {
    changes.push_back({where, std::string(key), std::string(data)});
    size += key.size() + data.size();
  }
  void erase(family where, std::string_view key) override {
    changes.push_back({where, std::string(key), {}, change::erase});
    size += key.size();
  }
  void erase_range(family where, std::string_view from, std::string_view until) override {
    changes.push_back({where, std::string(from), std::string(until), change::erase_range});
  }
  void clear() override { changes.clear(), size = 0; }
  std::size_t bytes() const override { return size; }

  std::vector<change> changes;
  std::size_t size = 0;
};

class memory_store : public store {
public:
  std::unique_ptr<view> look() const override { return std::make_unique<memory_view>(all_); }
  result<std::optional<std::string>> get(family where, std::string_view key) const override {
    return memory_view(all_).get(where, key);
  }
  std::unique_ptr<batch> make_batch() const override { return std::make_unique<memory_batch>(); }
  result<void> admit(std::size_t) override { return {}; }
  result<void> write(batch& changes, bool) override {
    std::lock_guard turn(all_->turn);
    std::unique_lock lock(all_->guard);
    for (auto& c : static_cast<memory_batch&>(changes).changes) {
      auto& t = all_->tables[static_cast<std::size_t>(c.where)];
      if (c.how == memory_batch::change::erase_range)
        t.erase(t.lower_bound(c.key), t.lower_bound(c.data));
      else if (c.how == memory_batch::change::erase)
        t.erase(c.key);
      else
        t.insert_or_assign(std::move(c.key), std::move(c.data));
    }
    return {};
  }
  result<void> put_blob(std::string_view name, std::string_view bytes) override {
    std::lock_guard turn(all_->turn);
    std::unique_lock lock(all_->guard);
    all_->blobs.insert_or_assign(std::string(name), std::string(bytes));
    return {};
  }
  result<std::string> blob(std::string_view name) const override {
    std::shared_lock lock(all_->guard);
    auto found = all_->blobs.find(name);
    if (found == all_->blobs.end())
      return error{errc::not_found, "there is no blob " + std::string(name)};
    return found->second;
  }

private:
  std::shared_ptr<contents> all_ = std::make_shared<contents>();
};

} // namespace

std::shared_ptr<store> make_memory_store() { return std::make_shared<memory_store>(); }

} // namespace troupe::storage

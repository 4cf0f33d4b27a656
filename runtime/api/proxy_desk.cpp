#include "runtime/api/proxy_desk.hpp"

#include "actors/allocation/task_services.hpp"
#include "actors/task/task_settings.hpp"
#include "model/names.hpp"
#include "system/random.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

constexpr std::size_t most_experiments = 1024, most_codes = 1024;
constexpr duration code_life = std::chrono::minutes{1};
/// Shortest time between two reports of one task's use.
constexpr duration between_uses = std::chrono::seconds{5};

} // namespace

result<std::vector<task_service>> proxy_desk::services_of(const storage::reader& storage,
                                                          const task_row& task) {
  if (!task.id.is_trial()) {
    auto other = storage.other_task(task.id);
    if (!other && other.error().code != errc::not_found)
      return other.error();
    return other ? troupe::services_of(other->made.config, task.id) : std::vector<task_service>();
  }
  std::vector<task_service> out;
  const auto name = task_name(task.experiment, task.id);
  {
    std::lock_guard lock(mutex_);
    if (auto known = ports_.find(task.experiment); known != ports_.end())
      out = known->second;
    else {
      auto row = storage.experiment(task.experiment);
      if (!row)
        return row.error();
      out = services_in(row->config);
      if (ports_.size() >= most_experiments)
        ports_.erase(ports_.begin());
      ports_[task.experiment] = out;
    }
  }
  for (auto& one : out)
    one.id.insert(0, name);
  return out;
}

result<proxy_desk::found_service> proxy_desk::find(const storage::reader& storage,
                                                   const proxy::service_path& path) {
  // Read before the row, so that what is kept is never older than this fact.
  const auto seen = storage.sequence();
  {
    std::lock_guard lock(mutex_);
    if (found_at_ == seen)
      if (const auto known = found_.find(path.service); known != found_.end())
        return known->second;
  }
  const error none{errc::not_found, "service not found: " + path.service};
  const auto id = named_task(path.task);
  if (!id)
    return none;
  auto row = storage.task(id);
  if (!row)
    return row.error().code == errc::not_found ? none : row.error();
  if (task_name(row->experiment, id) != path.task || row->ended != time_point{})
    return none;
  auto all = services_of(storage, *row);
  if (!all)
    return all.error();
  const auto it = std::find_if(all->begin(), all->end(), [&](const task_service& one) {
    return one.id == path.service || (path.port != 0 && one.port == path.port);
  });
  if (it == all->end())
    return none;
  found_service out{std::move(*row), *it, path.task};
  std::lock_guard lock(mutex_);
  if (found_at_ != seen || found_.size() >= most_experiments)
    found_.clear();
  found_at_ = seen;
  found_.emplace(path.service, out);
  return out;
}

bool proxy_desk::is_news(task_id task, time_point now) {
  std::lock_guard lock(mutex_);
  const auto known = used_.find(task);
  if (known != used_.end() && now - known->second < between_uses)
    return false;
  if (used_.size() >= most_experiments)
    std::erase_if(used_, [&](const auto& one) { return now - one.second >= between_uses; });
  if (used_.size() < most_experiments || known != used_.end())
    used_[task] = now;
  return true;
}

std::string proxy_desk::make_code(const std::string& service, const std::string& pass, time_point now) {
  auto text = random_hex(20);
  std::lock_guard lock(mutex_);
  std::erase_if(codes_, [&](const auto& one) { return one.second.until <= now; });
  if (codes_.size() >= most_codes)
    codes_.erase(std::min_element(codes_.begin(), codes_.end(), [](const auto& a, const auto& b) {
      return a.second.until < b.second.until;
    }));
  codes_[text] = {service, pass, now + code_life};
  return text;
}

std::optional<std::string> proxy_desk::take_code(const std::string& service, const std::string& text,
                                                 time_point now) {
  std::lock_guard lock(mutex_);
  auto found = codes_.find(text);
  if (found == codes_.end() || found->second.service != service)
    return std::nullopt;
  const auto one = std::move(found->second);
  codes_.erase(found);
  return one.until > now ? std::optional{one.pass} : std::nullopt;
}

std::string page_cookie_name(const std::string& task_name) {
  const auto id = named_task(task_name);
  return "troupe-task-" + (id.is_trial() ? to_string(id) : task_name.substr(0, 8));
}

} // namespace troupe::api

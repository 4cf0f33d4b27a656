#pragma once
// What the server keeps of the proxy: the table of connections, the codes of pages, and which services a task
// has. Thread-safe.

#include "model/task_service.hpp"
#include "runtime/proxy/door.hpp"
#include "runtime/proxy/junctions.hpp"
#include "runtime/proxy/service_path.hpp"
#include "storage/journal.hpp"

namespace troupe::api {

class proxy_desk {
public:
  std::shared_ptr<proxy::junctions> junctions = std::make_shared<proxy::junctions>();

  struct found_service {
    task_row task;
    task_service service;
    std::string name; ///< of the task
  };
  /// The service that a path names, of a task that has not ended; errc::not_found: "service not found: X".
  result<found_service> find(const storage::reader& storage, const proxy::service_path& path);
  /// All of a task, by its row.
  result<std::vector<task_service>> services_of(const storage::reader& storage, const task_row& task);

  /// Whether that somebody uses the task has not been said for 5 s; it counts as said now.
  bool is_news(task_id task, time_point now);

  /// A code that works once, within a minute, for that service alone; `pass` is what it stands for.
  std::string make_code(const std::string& service, const std::string& pass, time_point now);
  std::optional<std::string> take_code(const std::string& service, const std::string& code, time_point now);

private:
  struct code {
    std::string service, pass;
    time_point until;
  };
  std::mutex mutex_;
  std::map<experiment_id, std::vector<task_service>> ports_; ///< of experiments: without the task's name
  std::map<std::string, found_service> found_;               ///< by what the path says, all at `found_at_`
  std::uint64_t found_at_ = 0;                               ///< number of the newest fact then
  std::map<std::string, code> codes_;
  std::map<task_id, time_point> used_; ///< when it was said last; bounded
};

/// "troupe-task-" and the beginning of the task's id.
std::string page_cookie_name(const std::string& task_name);

} // namespace troupe::api

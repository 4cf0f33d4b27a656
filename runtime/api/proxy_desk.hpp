#pragma once
// What the server keeps for the proxy: the table of connections, the codes of pages, and the services of
// tasks. Thread-safe.

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
    std::string name; ///< name of the task
  };
  /// The service that a path names. Fails with errc::not_found, "service not found: X", also where the task
  /// has ended.
  result<found_service> find(const storage::reader& storage, const proxy::service_path& path);
  /// All services of a task.
  result<std::vector<task_service>> services_of(const storage::reader& storage, const task_row& task);

  /// Whether the use of the task was last reported 5 s ago or earlier; true counts as a report now.
  bool is_news(task_id task, time_point now);

  /// Makes a code that works once, within a minute, for this service only. `pass` is what the code stands
  /// for.
  std::string make_code(const std::string& service, const std::string& pass, time_point now);
  std::optional<std::string> take_code(const std::string& service, const std::string& code, time_point now);

private:
  struct code {
    std::string service, pass;
    time_point until;
  };
  std::mutex mutex_;
  /// Declared services of experiments, without the task's name.
  std::map<experiment_id, std::vector<task_service>> ports_;
  /// By the service's name in the path; all found at `found_at_`.
  std::map<std::string, found_service> found_;
  std::uint64_t found_at_ = 0; ///< number of the newest fact at that time
  std::map<std::string, code> codes_;
  std::map<task_id, time_point> used_; ///< when the use of each task was reported last; bounded
};

/// The name of the cookie of a task's page: "troupe-task-" and the beginning of the task's id.
std::string page_cookie_name(const std::string& task_name);

} // namespace troupe::api

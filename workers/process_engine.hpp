#pragma once
// The inside of process_runtime: one thread owns every connection, another removes folders.

#include "workers/process_runtime.hpp"
#include "workers/task_link.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace troupe::workers {

class process_runtime::engine {
public:
  engine(process_runtime_options options, listener tell)
      : options_(std::move(options)), tell_(std::move(tell)) {}
  ~engine();

  result<void> open();
  result<void> launch(const task_spec& spec, owned_fd zygote);
  result<std::filesystem::path> prepare(const std::string& id);
  void discard(const std::string& id);
  result<void> adopt_all();
  result<void> renew_all();
  void set_leases(std::chrono::milliseconds lease, std::chrono::milliseconds adopt);
  sandbox_settings settings_now() const;
  result<void> send(const std::string& id, std::string line);
  result<void> kill(const std::string& id);
  result<void> forget(const std::string& id);
  result<void> drop(const std::string& id);
  result<void> drop_spool(const std::string& id);
  std::vector<task_summary> list() const;
  int spares_ready() const;
  const process_runtime_options& options() const { return options_; }

private:
  using clock = std::chrono::steady_clock;

  struct launch_order {
    std::string id, spec;
    std::uint64_t spare = 0; ///< serial of the sandbox that was told to run it; 0: none
    owned_fd zygote;
  };
  struct adopt_order {};
  struct renew_all_order {};
  struct line_order {
    std::string id, line;
  };
  struct kill_order {
    std::string id;
  };
  struct forget_order {
    std::string id;
    bool with_spool = false;
  };
  using order =
    std::variant<launch_order, adopt_order, renew_all_order, line_order, kill_order, forget_order>;

  /// What an event of the poll set is about.
  enum class source : std::uint64_t { wake, starter, socket, helper, nursery };
  static constexpr int source_bits = 3;

  /// One troupe-task and its folder: of a task, or a spare.
  struct sandbox {
    std::uint64_t serial = 0;
    std::string id; ///< empty for a spare
    std::string folder_name;
    owned_fd folder;
    int starter_pid = 0;     ///< pid of the short-lived process that makes the sandbox; 0: none
    owned_fd starter;        ///< pidfd of the starter
    bool in_nursery = false; ///< the nursery was told to make it and has not answered
    std::optional<task_link> link;
    owned_fd helper;                 ///< pidfd of troupe-task
    owned_fd zygote;                 ///< connection to the zygote of the task, until the task has started
    std::vector<std::string> unsent; ///< lines to send once there is a connection
    isolation how = isolation::process_group;
    std::string remark;
    bool ready = false;   ///< whether it is a spare that waits for a task
    bool run_due = false; ///< whether it is a former spare that has not confirmed its task
    std::string given_up; ///< why it was killed before the task was reported as started; empty: it was not
    bool adopted = false;
    bool inventory = false; ///< whether adopt_all() waits for it
    bool started_told = false, frozen_told = false, kill_wanted = false;
    int empty_searches = 0; ///< searches that found no process that outlived troupe-task
    bool dead = false;      ///< whether troupe-task is dead; its record is not judged yet
    bool done = false;      ///< whether the end was reported
    clock::time_point retry_at = clock::time_point::max(); ///< then dials, or searches for survivors, again
    clock::time_point kill_at = clock::time_point::max();  ///< then kills troupe-task itself
  };

  struct ready_spare {
    std::uint64_t serial = 0;
    int socket = -1; ///< open as long as the spare stands in a list; -1: being dialed
    std::string folder_name;
  };

  struct sweep {
    std::string folder_name;
    bool with_spool = false;
    std::string forget_id; ///< task to forget once the folder is removed; may be empty
    owned_fd helper;       ///< troupe-task, whose death is waited for; empty: the folder is not used again
    bool kept = false;     ///< The folder is to be used again; said here as well, as `helper` is moved out.
  };

  // Orders come from any thread.
  result<void> queue(order x, bool wake = true);
  result<task_phase> phase_of(const std::string& id) const;
  void set_phase(const std::string& id, task_phase phase, int pid);

  // process_engine.cpp: runs on the thread that owns the connections
  void work();
  void run_orders();
  void obey(launch_order& x);
  void obey(adopt_order&);
  void obey(renew_all_order&);
  void obey(line_order& x);
  void obey(kill_order& x);
  void obey(forget_order& x);
  void on_event(source what, std::uint64_t serial);
  void on_time(clock::time_point now);
  int wait_ms(clock::time_point now) const;
  void watch(int fd, source what, std::uint64_t serial);
  void forget_fd(owned_fd& fd);
  sandbox* find(const std::string& id);
  sandbox& add(std::string folder_name, owned_fd folder);
  void erase(std::uint64_t serial);
  void keep_spares();
  void name_spare(sandbox& box, launch_order& x);
  void run(sandbox& box);
  void drop_link(sandbox& box);

  // process_sandbox.cpp: one sandbox from start to end
  void start(sandbox& box, const std::string& spec);
  void on_starter(sandbox& box);
  void open_nursery();
  void close_nursery(bool hangs = false);
  void replace_nursery();
  bool ask_nursery(sandbox& box, const std::string& spec, owned_fd& its_end);
  void on_nursery();
  void dial(sandbox& box);
  void on_socket(sandbox& box);
  void on_helper(sandbox& box);
  void retry(sandbox& box);
  void offer(sandbox& box);
  void clear_away(sandbox& box);
  void give_up(sandbox& box, const std::string& why);
  void hear(sandbox& box, const sandbox_state& x);
  void hear(sandbox& box, const sandbox_started& x);
  void hear(sandbox& box, const rank_end& x);
  void hear(sandbox& box, const sandbox_frozen& x);
  void hear(sandbox& box, const sandbox_thawed& x);
  void hear(sandbox& box, const sandbox_ended& x);
  void hear(sandbox& box, const sandbox_complaint& x);
  void say(sandbox& box, const std::string& line);
  void kill_helper(sandbox& box);
  void judge(sandbox& box);
  std::string why_lost(const sandbox& box) const;
  void end(sandbox& box, task_end how);
  void lose(sandbox& box, const std::string& why);
  void settle(sandbox& box);
  void check_inventory();
  void tell_started(sandbox& box, int pid);
  std::string path_of(const sandbox& box) const;

  // Runs on the thread that removes folders.
  void remove_folders();
  bool keep_folder(const sweep& job);

  const process_runtime_options options_;
  std::atomic<std::int64_t> lease_ms_{0}, adopt_ms_{-1}; ///< set by set_leases; 0 and -1: the options hold
  const listener tell_;
  owned_fd root_, poll_, wake_;

  mutable std::mutex mutex_; ///< guards what follows, up to the blank line
  std::deque<order> orders_;
  std::map<std::string, task_summary> known_;
  std::vector<ready_spare> ready_;
  std::map<std::string, ready_spare>
    prepared_; ///< spares by the task whose files they hold; a socket of -1 is being dialed
  bool stopping_ = false;
  std::deque<sweep> sweeps_;
  std::vector<std::string> free_; ///< folders of ended tasks, to be used again by a spare
  bool keeps_folders_ = true;     ///< The newest folder that was to be used again could be kept.
  bool spare_waits_ = false;      ///< The sweeper wakes the engine after its next folder.
  std::uint64_t next_folder_ = 1;
  std::condition_variable swept_;

  owned_fd nursery_; ///< takes its orders; empty: each sandbox is started by its own process
  int nursery_pid_ = 0;
  clock::time_point nursery_again_at_ = clock::time_point::min();
  clock::time_point nursery_due_ = clock::time_point::max(); ///< then it hangs; set while it has orders

  std::map<std::uint64_t, sandbox> boxes_;
  std::map<std::string, std::uint64_t> serials_;
  std::uint64_t next_serial_ = 1;
  std::size_t inventory_open_ = 0, inventory_size_ = 0;
  bool inventory_told_ = true;
  bool spares_of_use_ = true; ///< false where namespaces are refused
  clock::time_point spares_again_at_ = clock::time_point::min();
  std::thread worker_, sweeper_;
};

} // namespace troupe::workers

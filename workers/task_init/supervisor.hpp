#pragma once
// The life of one sandbox after it is made: ranks, output, lease, socket, exit record.
//
//   spare --run--> running <--thaw / freeze, lease over--> frozen
//                     |  all ranks ended, or kill             |  too long, or kill
//                     v                                        v
//                   ending (kills what is left) --record written--> ended --bye or time--> gone

#include "workers/task_init/fence.hpp"
#include "workers/task_init/mounts.hpp"
#include "workers/task_init/ranks.hpp"
#include "workers/task_init/spool.hpp"

#include <poll.h>

namespace troupe::task_init {

struct sandbox {
  int folder = -1;   ///< the task's folder, also the working directory
  int listener = -1; ///< listens on the socket in the folder; -1: not yet
  int agent = -1;    ///< a connection to the process that started this one; -1: none
  pid_t host_pid = 0;
  bool pid_namespace = false;
  fault remark; ///< why it is isolated less than it could be
  host_view host;
  std::int64_t spare_idle_ms = 0; ///< a spare without a connection ends after this
};

/// Makes the socket in the working directory, which is the task's folder.
fault listen_here(int& listener);

class supervisor {
public:
  explicit supervisor(const sandbox& box) : box_(box) {}
  /// Runs the spec in the open file `spec`; where that is -1, waits for an order. Returns when this process
  /// should end.
  void run(int spec);

private:
  enum class phase { spare, running, ending, ended };
  struct source {
    int fd = -1;
    std::size_t used = 0;
    char* line = nullptr;  ///< the unfinished line, max_payload_bytes
    bool returned = false; ///< the last byte was a carriage return: the next bytes are written over the line
    std::int64_t state_ms =
      0;                ///< when a state of the unfinished line was last spooled, or began to wait; 0: none
    bool given = false; ///< whether `line` was spooled as a state already
  };
  struct connection {
    int fd = -1;
    int passed[2] = {-1, -1}; ///< descriptors that came with the line, for the next `run`
    std::size_t used = 0;
    char line[4096];
  };
  static constexpr unsigned max_connections = 4;

  void start(int spec, int zygote);
  void start_one(std::size_t n);
  /// The next process of the task's namespace gets the number after this one, if the kernel allows it.
  static void set_last_pid(unsigned number);
  void tell_started();
  void note(const char* text);
  void fail(const fault& why);
  void wait_for_news();
  void on_timer();
  void arm_timer();
  std::int64_t life_deadline() const;
  std::int64_t fence_deadline() const;
  std::int64_t next_deadline() const;
  std::int64_t listen_deadline() const;
  void wait_for_an_agent();
  void ask_master();
  void hear_master(fence::answer said);
  void reap();
  bool collect(); ///< true when no child is left
  void note_end(std::size_t rank, int status);
  void check_end();
  void finish();
  bool write_record();
  void sync_record();

  void accept_connection();
  void read_connection(connection& c);
  void obey(connection& c, char* line);
  void tell(connection& c, const char* text);
  void tell_all(const char* text);
  void tell_state(connection& c);
  void describe_end(std::size_t rank, char* text, std::size_t room) const;
  void drop(connection& c);

  // supervisor_zygote.cpp: a rank that a warmed parent forks.
  bool asking() const { return gate_ >= 0; }
  fault ask_zygote();
  void hear_zygote();
  void hear_gate();
  void let_go(pid_t pid, pid_t host_pid);
  void start_cold(const char* why);
  void stop_asking();

  void freeze(const char* why);
  void thaw(std::int64_t lease_ms);
  void kill_all(const char* why);
  void stop_all();
  void signal_ranks(int number);

  void read_stream(std::size_t rank, bool err, bool to_the_end);
  void take_bytes(std::size_t rank, bool err, const char* bytes, std::size_t n);
  void take_states(std::size_t rank, bool err, const char* bytes, std::size_t n);
  void write_over(std::size_t rank, bool err);
  void give_state(std::size_t rank, bool err);
  void give_states();
  std::int64_t state_deadline() const;
  void add_line(std::size_t rank, bool err, std::uint8_t flags, const char* bytes, std::size_t size);
  void close_stream(std::size_t rank, bool err);

  sandbox box_;
  task_spec spec_;
  phase phase_ = phase::spare;
  bool frozen_ = false, killed_ = false, gone_ = false;
  std::int64_t lease_end_ms_ = 0, frozen_since_ms_ = 0, ended_at_ms_ = 0, lonely_since_ms_ = 0,
               retry_at_ms_ = 0;
  std::int64_t oom_before_ = 0, ended_us_ = 0;
  const char* why_ = "exited";
  const char* frozen_why_ = "lease"; ///< or "order"
  fault failure_;
  int children_ = -1, timer_ = -1, draft_ = -1;
  list<rank_state> ranks_;
  list<source> streams_; ///< out and err of rank n at 2n and 2n + 1
  connection connections_[max_connections];
  spool_writer spool_;
  // Without an agent the master is asked whether to go on. `fenced_` says that it refused; it is told when
  // all is dead.
  fence fence_;
  files_over_etc over_etc_;
  bool fenced_ = false, death_told_ = false;
  bool record_synced_ = false;
  std::int64_t next_listen_ms_ = 0;
  // Set while a rank waits to be forked, one rank after the other. The gate is closed once the rank runs, or
  // will not be forked.
  int zygote_ = -1, gate_ = -1;
  std::size_t asked_for_ = 0; ///< the rank that is asked for; earlier ranks run
  std::int64_t ask_until_ms_ = 0;
  std::int64_t next_ask_ms_ = 0;
};

} // namespace troupe::task_init

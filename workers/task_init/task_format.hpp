#pragma once
// What troupe-task and the agent agree on: names in the task's folder, the spec file, the records of the
// spool. Both include it, so it needs nothing but fixed-width integers.
//
// Socket lines (each ends with '\n', at most 4096 bytes). To troupe-task:
//   status | renew MS | signal N | kill | freeze | thaw MS | run | bye
// `run` comes with a descriptor of the spec, which need not have a name on disk yet, and perhaps with a
// second one: a connection to a warmed parent (a zygote), which is asked to fork the rank. From troupe-task;
// `state` comes first on every connection:
//   state STATE HELPER_PID RANK0_PID ISOLATION LEASE_LEFT_MS WHY...   STATE: spare starting running frozen
//   ended started RANK0_PID | rank N code|signal V AT_US FLAGS | frozen WHY | thawed | exited | error TEXT
// Pids are in the numbering of whoever started troupe-task.
//
// A nursery (`troupe-task --nursery`) makes sandboxes without an exec for each. Its descriptor 3 takes
// packets "make\0SERIAL\0FOLDER\0SPEC_FILE\0IDLE_MS\0", each with the connection of the sandbox; the spec's
// name is empty for a spare. It answers "made SERIAL" or "failed SERIAL WHY".

#include <cstdint>

namespace troupe::task_format {

// The zygote is sent "fork" with eight descriptors: the request ("cwd\0...", "arg\0...", "env\0...", each
// ended by a zero byte), the sandbox's mount, pid and user namespaces, stdin, stdout, stderr, and a gate. It
// answers "taken" or "no WHY". The forked process says "ready PID HOST_PID" at the gate, and runs the script
// once it reads "go".

inline constexpr int protocol = 1;
inline constexpr unsigned max_line_bytes = 4096;
inline constexpr unsigned max_ranks = 256;
inline constexpr std::uint64_t max_spec_bytes = 16u << 20;

// In the task's folder:
inline constexpr char spec_file[] = "spec";            ///< command and limits of the task; see below
inline constexpr char socket_file[] = "sock";          ///< socket at which troupe-task listens
inline constexpr char lock_file[] = "lock";            ///< flocked while troupe-task lives
inline constexpr char helper_file[] = "helper";        ///< "PID START_TICKS\n" of troupe-task
inline constexpr char complaint_file[] = "helper.err"; ///< stderr of troupe-task: why it could not start
inline constexpr char exit_file[] = "exit";            ///< the exit record; complete as soon as it exists
inline constexpr char exit_draft[] = "exit.tmp";
inline constexpr char log_folder[] = "log"; ///< the spool: files named by a number of 8 digits
inline constexpr char tmp_folder[] = "tmp"; ///< /tmp of the sandbox
inline constexpr char run_folder[] = "run"; ///< /run/determined of the sandbox

// The spec is a list of "KEY\0VALUE\0", spec_key first. `rank` opens a rank and holds its working directory;
// `arg`, `env`, `direct-arg` and `direct-env` belong to the rank above them; everything else stands before
// the first rank.
inline constexpr char spec_key[] = "troupe-task-spec"; ///< "1"

// The exit record is text: "troupe-exit 1\nid ID\nat US\nwhy exited|killed|lease|failed [TEXT]\n", then a
// line "rank N code|signal V at US FLAGS\n" for each rank that ran, and "end\n". FLAGS: '-' or letters: k
// killed by order, o the kernel's out-of-memory killer struck meanwhile.

inline constexpr char spool_magic[8] = {'T', 'R', 'P', 'S', 'P', 'O', 'L', '1'};

/// Begins every spool file; little-endian, as the host.
struct spool_header {
  char magic[8];
  std::uint64_t first_line; ///< number of the first line in this file; the first of all is 1
};

enum class spool_stream : std::uint8_t { out = 1, err = 2, notice = 3 }; ///< notice: by troupe-task itself

inline constexpr std::uint8_t line_continues = 1; ///< split at max_payload_bytes; the next record goes on
inline constexpr std::uint8_t line_unended = 2;   ///< the stream ended without a newline

inline constexpr std::uint32_t max_payload_bytes = 16u << 10;

/// Precedes the bytes of each line, which hold no newline.
struct spool_record {
  std::uint32_t bytes;
  std::uint16_t rank;
  std::uint8_t stream;
  std::uint8_t flags;
  std::int64_t at_us; ///< wall clock, when troupe-task read the line
  std::uint64_t line; ///< counts from 1; a gap means that lines were lost
};
static_assert(sizeof(spool_header) == 16 && sizeof(spool_record) == 24);

} // namespace troupe::task_format

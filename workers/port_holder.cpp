#include "workers/port_holder.hpp"

#include "workers/task_folder.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;

/// Whether it is 127.0.0.1 or every address, as the kernel writes them; dialling loopback reaches no other.
bool takes_loopback(std::string_view address) {
  return address == "0100007F" || address == "00000000" || address == "00000000000000000000000000000000" ||
         address == "0000000000000000FFFF00000100007F";
}

/// The inodes of the sockets that listen at the port.
std::set<unsigned long> inodes_at(int port) {
  std::set<unsigned long> out;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line); // the head
    while (std::getline(in, line)) {
      unsigned local = 0, state = 0;
      unsigned long inode = 0;
      char address[33] = {};
      // number, local address:port, remote address:port, state, queues, timer, retries, uid, timeout, inode
      if (std::sscanf(line.c_str(), " %*d: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*d %*d %lu", address,
                      &local, &state, &inode) == 4 &&
          state == 0x0a && local == static_cast<unsigned>(port) && takes_loopback(address))
        out.insert(inode);
    }
  }
  return out;
}

bool holds(int pid, const std::set<unsigned long>& inodes) {
  std::error_code fault;
  for (fs::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", fault), end; !fault && at != end;
       at.increment(fault)) {
    char text[64];
    const auto size = ::readlink(at->path().c_str(), text, sizeof text - 1);
    if (size <= 0)
      continue;
    text[size] = 0;
    unsigned long inode = 0;
    if (std::sscanf(text, "socket:[%lu]", &inode) == 1 && inodes.contains(inode))
      return true;
  }
  return false;
}

/// The process and all its descendants.
std::vector<int> tree_of(int pid) {
  std::vector<int> out{pid};
  for (std::size_t next = 0; next < out.size(); ++next) {
    std::error_code fault;
    const auto threads = "/proc/" + std::to_string(out[next]) + "/task";
    for (fs::directory_iterator at(threads, fault), end; !fault && at != end; at.increment(fault)) {
      std::ifstream in(at->path() / "children");
      for (int child = 0; in >> child;)
        out.push_back(child);
    }
  }
  return out;
}

bool task_holds(const fs::path& folder, const std::set<unsigned long>& inodes) {
  const owned_fd at{::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const int helper = at ? helper_of(at.get()) : 0;
  if (helper == 0)
    return false;
  for (const int pid : tree_of(helper))
    if (holds(pid, inodes))
      return true;
  return false;
}

} // namespace

port_holder holder_of(const fs::path& tasks, const std::string& name, int port) {
  const auto inodes = inodes_at(port);
  if (inodes.empty())
    return port_holder::unknown;
  if (task_holds(tasks / name, inodes))
    return port_holder::task;
  std::error_code fault;
  for (fs::directory_iterator at(tasks, fault), end; !fault && at != end; at.increment(fault))
    if (at->path().filename() != name && task_holds(at->path(), inodes))
      return port_holder::other_task;
  return port_holder::unknown;
}

} // namespace troupe::workers

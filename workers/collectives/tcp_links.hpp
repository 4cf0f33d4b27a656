#pragma once
// The connections of a rank with every other rank: one for data, and one on which the ranks show that they
// run and say what broke.

#include "workers/collectives/tcp.hpp"
#include "workers/collectives/tcp_door.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace troupe {

struct tcp_place { ///< address at which a rank listens
  std::string host;
  int port = 0;
};

class tcp_links {
public:
  /// The first group of a process: the ranks meet at rank 0, which tells all where each of them listens.
  static result<std::unique_ptr<tcp_links>> meet(const tcp_group& group);
  /// Joins a group of ranks that know each other's places, in the order of `places`; each listens at its own
  /// door.
  static result<std::unique_ptr<tcp_links>> join(const tcp_group& group, std::shared_ptr<tcp_door> door,
                                                 std::vector<tcp_place> places);
  ~tcp_links(); ///< tells the other ranks that this one leaves
  tcp_links(const tcp_links&) = delete;

  int data(int rank) const { return peers_[std::size_t(rank)].data.get(); } ///< a socket that does not block
  int alarm() const { return alarm_.get(); } ///< readable when the group is broken

  /// From now on every rank's operations fail with the first text given. Any thread may call it.
  void break_group(errc code, const std::string& why);
  result<void> unbroken() const;
  /// To be called when the data of `rank` has ended while it was needed: breaks the group, with what is known
  /// of the reason.
  result<void> lost(int rank);

  const std::shared_ptr<tcp_door>& door() const { return door_; }
  const std::vector<tcp_place>& places() const { return places_; }

private:
  struct peer {
    workers::owned_fd control, data;
    std::string heard; ///< bytes of a frame that is not whole yet
    int silent = 0;    ///< beats in a row that did not come
    std::atomic<bool> left{false}, gone{false};
  };
  enum class frame : std::uint32_t { beat = 1, left = 2, broken = 3, places = 4 };

  explicit tcp_links(const tcp_group& group);
  result<void> gather(tcp_deadline until);      ///< on rank 0
  result<void> report(tcp_deadline until);      ///< on the other ranks
  result<void> connect_all(tcp_deadline until); ///< connects to the ranks that have no connection yet
  result<void> take_next(tcp_deadline until, bool with_data);
  result<workers::owned_fd> dial(const tcp_place& to, int rank, tcp_channel which, tcp_deadline until);
  result<void> missing(const std::string& what);
  tcp_guest myself(tcp_channel which) const;
  void start();
  void watch(); ///< runs on the thread
  void hear(int rank);
  void take_frame(int rank, frame kind, std::string_view body);
  void send_frame(int rank, frame kind, std::string_view body);
  void listen_to_all();
  std::string who(int rank) const;

  tcp_group group_;
  std::uint64_t hash_ = 0;
  std::shared_ptr<tcp_door> door_;
  std::vector<tcp_place> places_;
  std::vector<peer> peers_;
  workers::owned_fd alarm_, stop_;
  std::chrono::milliseconds beat_every_{250};
  mutable std::mutex lock_; ///< guards the text below and the frames that are sent
  std::atomic<bool> broken_{false};
  errc code_{};
  std::string why_;
  std::thread thread_;
};

} // namespace troupe

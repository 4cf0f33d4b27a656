// Both sides of the rendezvous of a large gang on the task link, for rendezvous.py.
//   perf_rendezvous agent RANKS
//     Runs the real socket, gateway machine and stand-ins, and prints its endpoint. Once all ranks have
//     reported, it tells each to train.
//   perf_rendezvous ranks FIRST COUNT ENDPOINT
//     Runs stub workers: prints "ready", waits for a line, connects all of them, prints "done".

#include "actors/harness/harness.hpp"
#include "actors/worker/stand_in.hpp"
#include "workers/harness_link.hpp"

#include <zmq.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>

namespace troupe {
namespace {

using namespace workers;

constexpr allocation_id id{{12}, {3}};
const std::string token = "0123456789abcdef0123456789abcdef";

time_point now() { return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now()); }

class agent_side {
public:
  explicit agent_side(int ranks) : ranks_(ranks) {}

  int run() {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<task_message> inbox;
    auto opened = open_harness_link({}, [&](std::vector<task_message> batch) {
      std::lock_guard held(mutex);
      for (auto& x : batch)
        inbox.push_back(std::move(x));
      came.notify_one();
    });
    if (!opened)
      return std::fprintf(stderr, "%s\n", opened.error().what.c_str()), 1;
    link_ = std::move(*opened);
    apply(task_expected{id, token, "/checkpoints"});
    std::printf("%s\n", link_->endpoint().c_str());
    std::fflush(stdout);
    for (;;) {
      frames_received all;
      {
        std::unique_lock held(mutex);
        if (!came.wait_for(held, std::chrono::seconds(60), [&] { return !inbox.empty(); }))
          return 0;
        all.messages.swap(inbox);
      }
      apply(all);
    }
  }

private:
  void apply(const harness_event& ev) {
    for (auto& action : machine_.apply(ev, now())) {
      if (auto* frame = std::get_if<send_frame>(&action))
        link_->send(frame->peer, frame->frame);
      else if (auto* credit = std::get_if<release_credit>(&action))
        link_->release(credit->bytes);
      else if (auto* word = std::get_if<forward_worker>(&action))
        hear(*word);
    }
  }

  void hear(const forward_worker& x) {
    const int rank = x.worker.rank;
    auto [at, fresh] = gang_.try_emplace(rank, stand_in({id, "a", rank}), x.worker);
    const auto passed =
      at->second.first.apply(word_heard{id, rank, x.worker.process, x.protocol, x.word}, now());
    for (const auto& one : passed)
      here_ += fresh && std::holds_alternative<pass_word>(one);
    if (here_ < ranks_ || told_)
      return;
    told_ = true;
    const auto order = encode_worker(worker_order{train_until{200}});
    for (auto& [member, who] : gang_)
      for (auto& one : who.first.apply(order_heard{id, member, worker_protocol, order}, now()))
        if (auto* down = std::get_if<pass_order>(&one))
          apply(worker_answered{who.second, worker_protocol, down->order, ""});
  }

  const int ranks_;
  std::unique_ptr<harness_link> link_;
  harness machine_;
  std::map<int, std::pair<stand_in, task_stream>> gang_;
  int here_ = 0;
  bool told_ = false;
};

std::string packed(auto fill) {
  msgpack::sbuffer bytes;
  msgpack::packer<msgpack::sbuffer> out(bytes);
  fill(out);
  return {bytes.data(), bytes.size()};
}

int stubs(int first, int count, const char* endpoint) {
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
  zmq::context_t context(1);
  std::vector<zmq::socket_t> sockets;
  std::vector<zmq::pollitem_t> items;
  for (int i = 0; i < count; ++i) {
    auto& s = sockets.emplace_back(context, zmq::socket_type::dealer);
    s.set(zmq::sockopt::linger, 0);
    s.connect(endpoint);
    const int rank = first + i;
    char process[33];
    std::snprintf(process, sizeof process, "%032x", rank + 1);
    s.send(zmq::buffer(packed([&](auto& out) {
      out.pack_array(7);
      out.pack("hello").pack(1).pack(token).pack(to_string(id)).pack(rank).pack(std::string(process)).pack(0);
    })));
    const auto word = encode_worker(worker_word{worker_status{}});
    s.send(zmq::buffer(packed([&](auto& out) {
      out.pack_array(3);
      out.pack("worker")
        .pack(worker_protocol)
        .pack_bin(std::uint32_t(word.size()))
        .pack_bin_body(word.data(), std::uint32_t(word.size()));
    })));
    items.push_back({s.handle(), 0, ZMQ_POLLIN, 0});
  }
  std::vector<bool> led(std::size_t(count), false);
  for (int left = count; left > 0;) {
    zmq::poll(items, std::chrono::milliseconds(-1));
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      zmq::message_t body;
      while (items[i].revents && sockets[i].recv(body, zmq::recv_flags::dontwait)) {
        const auto text = body.to_string_view();
        if (text.find("error") != text.npos)
          return std::fprintf(stderr, "refused: %.*s\n", int(text.size()), text.data()), 1;
        if (text.find("train_until") != text.npos && !led[i])
          led[i] = true, --left;
      }
    }
  }
  std::puts("done");
  std::fflush(stdout);
  return 0;
}

} // namespace
} // namespace troupe

int main(int count, char** words) {
  if (count == 3 && std::string_view(words[1]) == "agent")
    return troupe::agent_side(std::atoi(words[2])).run();
  if (count == 5 && std::string_view(words[1]) == "ranks")
    return troupe::stubs(std::atoi(words[2]), std::atoi(words[3]), words[4]);
  std::fprintf(stderr, "usage: %s agent RANKS | ranks FIRST COUNT ENDPOINT\n", words[0]);
  return 2;
}

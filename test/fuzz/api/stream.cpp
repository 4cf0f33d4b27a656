// The input is what a client of /stream sends: the bytes of a WebSocket, which are cut in two ways, or (odd
// first byte) one message. The bytes have to mean the same however they are cut. A message is obeyed or
// refused, and a refused message does not change the subscription.

#include "runtime/api/update_book.hpp"
#include "runtime/api/websocket.hpp"

#include <cstdlib>

using namespace troupe;
using namespace troupe::api;

namespace {

void require(bool true_) {
  if (!true_)
    std::abort();
}

/// Returns the messages, and at the end "ok" or the fault.
std::vector<std::string> read_cut(std::string_view all, std::size_t piece) {
  websocket_reader reader(1 << 20);
  std::vector<websocket_reader::message> got;
  std::vector<std::string> out;
  std::string end = "ok";
  for (std::size_t at = 0; at < all.size(); at += piece)
    if (auto fine = reader.take(all.substr(at, piece), got); !fine) {
      end = fine.error().what;
      break;
    }
  for (auto& one : got)
    out.push_back(std::to_string(static_cast<int>(one.what)) + one.bytes);
  out.push_back(end);
  return out;
}

const update_book& book() {
  static const auto made = [] {
    update_book out;
    std::uint64_t number = 0;
    for (std::uint64_t id = 2; id < 6; ++id) {
      project_changed p;
      p.id = {id};
      p.workspace = {id % 2 + 1};
      p.owner = "ada";
      out.take(p, number++);
      model_changed m;
      m.id = {id};
      m.workspace = {id % 2 + 1};
      m.owner = "bob";
      out.take(m, number++);
      model_version_changed v;
      v.model = {id};
      v.version = 1;
      out.take(v, number++);
    }
    return out;
  }();
  return made;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto whole = read_cut(text, size);
    require(whole == read_cut(text, 1) && whole == read_cut(text, 7));
    return 0;
  }
  static const update_subscription::world in{[](const std::string& name) { return name == "ada" ? 7 : 8; },
                                             [](updated, const update_entry&) { return true; }};
  update_subscription wants;
  std::vector<std::string> first, out;
  require(bool(wants.subscribe(R"({"sync_id":"a","subscribe":{"projects":{"workspace_ids":[1,2]}}})", book(),
                               in, first)));
  const bool fine = bool(wants.subscribe(std::string(text), book(), in, out));
  require(fine == !out.empty());
  for (const auto& one : out)
    require(bool(parse_json(one)));
  if (fine) { // each update is told once: a client that knows it receives nothing more
    std::vector<std::string> more;
    wants.follow(book(), in, out);
    require(wants.is_answered());
    wants.follow(book(), in, more);
    require(more.empty());
  }
  return 0;
}

#include "workers/trial/progress_line.hpp"

#include <cstdio>

namespace troupe::trial {
namespace {

using clock = std::chrono::steady_clock;

std::string text_of(const metrics& m) {
  std::string text;
  for (const auto& [name, x] : m.all()) {
    char part[40];
    std::snprintf(part, sizeof part, "%.5g", x);
    text += "  " + name + " " + part;
  }
  return text;
}

} // namespace

void progress_line::begin(std::int64_t done, std::int64_t batches) {
  first_ = done;
  batches_ = batches;
  began_ = clock::now();
  shown_ = {};
}

void progress_line::stepped(std::int64_t step, const metrics& m) {
  const auto now = clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(1000);
  if (quiet_ || (now - shown_ < pause && step != batches_))
    return;
  shown_ = now;
  show(step, m);
}

void progress_line::show(std::int64_t step, const metrics& m) {
  const double seconds = std::chrono::duration<double>(clock::now() - began_).count();
  const double rate = double(step - first_) / std::max(seconds, 1e-9);
  std::fprintf(stderr, "%sstep %lld/%lld (%lld %%)%s  %.4g batches/s  %.0f s left%s",
               terminal_ ? "\r\033[K" : "", static_cast<long long>(step), static_cast<long long>(batches_),
               static_cast<long long>(100 * step / batches_), text_of(m).c_str(), rate,
               double(batches_ - step) / std::max(rate, 1e-9), terminal_ ? "" : "\n");
  open_ = terminal_;
}

void progress_line::validated(std::int64_t step, const metrics& m) {
  if (!quiet_)
    say("validation at step " + std::to_string(step) + ":" + text_of(m));
}

void progress_line::say(const std::string& text) {
  end();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void progress_line::end() {
  if (std::exchange(open_, false))
    std::fputc('\n', stderr);
}

} // namespace troupe::trial

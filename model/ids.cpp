#include "model/ids.hpp"

#include <array>
#include <cstdio>

namespace troupe {
namespace {

constexpr std::size_t uuid_length = 36;

/// Reads 128 bits from "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; false where `text` is anything else.
bool read_uuid(std::string_view text, std::uint64_t& high, std::uint64_t& low) {
  if (text.size() != uuid_length)
    return false;
  std::uint64_t halves[2] = {0, 0};
  int digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-')
        return false;
      continue;
    }
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0)
      return false;
    auto& half = halves[digits++ / 16];
    half = half << 4 | std::uint64_t(digit);
  }
  high = halves[0];
  low = halves[1];
  return true;
}

} // namespace

std::string to_string(task_id id) {
  if (id.high() == 0)
    return std::to_string(id.low());
  std::array<char, uuid_length + 1> text;
  std::snprintf(text.data(), text.size(), "%08llx-%04llx-%04llx-%04llx-%012llx",
                static_cast<unsigned long long>(id.high() >> 32),
                static_cast<unsigned long long>(id.high() >> 16 & 0xffff),
                static_cast<unsigned long long>(id.high() & 0xffff),
                static_cast<unsigned long long>(id.low() >> 48),
                static_cast<unsigned long long>(id.low() & 0xffff'ffff'ffffULL));
  return {text.data(), uuid_length};
}

std::string to_string(allocation_id id) { return to_string(id.task) + "." + to_string(id.run); }

task_id parse_task(std::string_view text) {
  if (std::uint64_t high = 0, low = 0; read_uuid(text, high, low))
    return high == 0 ? task_id{} : task_id::of_bits(high, low);
  const auto trial = parse_id<trial_id>(text);
  return trial;
}

allocation_id parse_allocation(std::string_view text) {
  auto dot = text.rfind('.');
  if (dot == std::string_view::npos)
    return {};
  allocation_id id{parse_task(text.substr(0, dot)), parse_id<run_id>(text.substr(dot + 1))};
  return id.task && id.run ? id : allocation_id{};
}

const char* name(task_kind kind) {
  switch (kind) {
  case task_kind::trial:
    return "trial";
  case task_kind::command:
    return "command";
  case task_kind::notebook:
    return "notebook";
  case task_kind::shell:
    return "shell";
  case task_kind::tensorboard:
    return "tensorboard";
  case task_kind::generic:
    return "generic";
  case task_kind::checkpoint_gc:
    return "checkpoint_gc";
  }
  return "trial";
}

} // namespace troupe

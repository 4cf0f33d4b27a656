#include "runtime/shell/top_view.hpp"

#include "runtime/cli/output.hpp"

#include <algorithm>

namespace troupe::shell {
namespace {

constexpr char ctrl_c = 3, ctrl_d = 4, ctrl_u = 21, escape = 27, backspace = 8, rubout = 127;

bool matches(const value& row, const std::string& part) {
  return part.empty() || std::any_of(row.begin(), row.end(), [&](const value& cell) {
           return cell.is_string() && cell.get_ref<const std::string&>().find(part) != std::string::npos;
         });
}

} // namespace

const std::vector<std::string>& top_view::sort_keys() {
  static const std::vector<std::string> keys = {"msg_per_s", "backlog",  "run_us_p99", "wait_us_p99",
                                                "messages",  "restarts", "actor"};
  return keys;
}

bool top_view::sort_by(const std::string& key) {
  auto at = std::find(sort_keys().begin(), sort_keys().end(), key);
  if (at == sort_keys().end())
    return false;
  sort_ = static_cast<std::size_t>(at - sort_keys().begin());
  return true;
}

void top_view::take(char key) {
  if (key == 0 && escape_ != std::string(1, escape))
    return;
  if (!escape_.empty() && key != 0) { // arrows are ESC [ A and ESC O A
    if (escape_.size() == 1 && (key == '[' || key == 'O')) {
      escape_ += key;
      return;
    }
    if (escape_.size() == 2) {
      escape_.clear();
      if (key == 'A' || key == 'B')
        move(key == 'A' ? -1 : 1);
      return;
    }
  } else if (key == escape) {
    escape_ = key;
    return;
  }
  changed_ = true;
  const bool gives_up = !escape_.empty(); // the Escape key alone
  escape_.clear();
  if (key == ctrl_c || key == ctrl_d) {
    leaves_ = true;
  } else if (!opened_.empty() || helps_) {
    opened_.clear(); // any key closes it
    helps_ = false;
  } else if (gives_up) {
    filter_ = typing_ ? before_ : "";
    typing_ = false;
  } else if (typing_) {
    typed(key);
  } else if (key == 'q' || key == 'Q') {
    leaves_ = true;
  } else if (key == 's') {
    sort_ = (sort_ + 1) % sort_keys().size();
  } else if (key == 'r') {
    rises_ = !rises_;
  } else if (key == 'j' || key == 'k') {
    move(key == 'k' ? -1 : 1);
  } else if (key == '/') {
    typing_ = true;
    before_ = filter_;
  } else if ((key == '\n' || key == '\r') && at_ < shown_.size()) {
    opened_ = shown_[at_];
  } else if (key == 't' && at_ < shown_.size()) {
    traced_ = shown_[at_];
  } else if (key == '?') {
    helps_ = true;
  }
}

void top_view::typed(char key) {
  if (key == '\n' || key == '\r') {
    typing_ = false;
  } else if (key == ctrl_u) {
    filter_.clear();
  } else if (key == backspace || key == rubout) {
    while (!filter_.empty() && (static_cast<unsigned char>(filter_.back()) & 0xc0) == 0x80)
      filter_.pop_back();
    if (!filter_.empty())
      filter_.pop_back();
  } else if (static_cast<unsigned char>(key) >= 0x20 && filter_.size() < 100) {
    filter_ += key;
  }
}

void top_view::move(int rows) {
  changed_ = true;
  if (shown_.empty() || typing_ || helps_ || !opened_.empty())
    return;
  const auto last = static_cast<int>(shown_.size()) - 1;
  at_ = static_cast<std::size_t>(std::clamp(static_cast<int>(at_) + rows, 0, last));
  chosen_ = shown_[at_];
}

value top_view::visible(const value& rows) {
  auto kept = value::array();
  for (const auto& row : rows)
    if (matches(row, filter_))
      kept.push_back(row);
  const auto& key = sort();
  const bool by_name = key == "actor";
  std::stable_sort(kept.begin(), kept.end(), [&](const value& a, const value& b) {
    const auto& x = cli::part(a, key);
    const auto& y = cli::part(b, key);
    if (by_name)
      return rises_ ? y < x : x < y;
    return rises_ ? number_in(x).value_or(0) < number_in(y).value_or(0)
                  : number_in(y).value_or(0) < number_in(x).value_or(0);
  });
  shown_.clear();
  for (const auto& row : kept)
    shown_.push_back(cli::shown(cli::part(row, "actor"), cli::show_as::plain, {}));
  const auto found = std::find(shown_.begin(), shown_.end(), chosen_);
  at_ = found == shown_.end() ? 0 : static_cast<std::size_t>(found - shown_.begin());
  return kept;
}

} // namespace troupe::shell

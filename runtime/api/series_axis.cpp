#include "runtime/api/series_axis.hpp"

#include <algorithm>

namespace troupe::api {
namespace {

constexpr double micro = 1e6;

/// The seconds that a trial had run at a given time, without the pauses between its runs and without waiting
/// for slots. Runs of processes outside of the cluster never get slots.
class running_time {
public:
  explicit running_time(const std::vector<run_row>& runs) {
    const bool placed =
      std::any_of(runs.begin(), runs.end(), [](const run_row& run) { return run.placed != time_point{}; });
    double before = 0;
    for (const auto& run : runs) {
      const auto begun = placed ? run.placed : run.started;
      const auto started = static_cast<double>(begun.time_since_epoch().count());
      starts_.push_back({static_cast<std::uint32_t>(run.run.value), started, before});
      if (run.ended != time_point{} && begun != time_point{})
        before += std::max(0.0, static_cast<double>(run.ended.time_since_epoch().count()) - started);
    }
  }
  double at(std::uint32_t run, std::int64_t when) const {
    for (const auto& one : starts_)
      if (one.run == run)
        return (one.before + static_cast<double>(when) - one.started) / micro;
    return 0;
  }

private:
  struct start {
    std::uint32_t run;
    double started, before;
  };
  std::vector<start> starts_;
};

} // namespace

void series_line::keep(std::optional<double> from, std::optional<double> to) {
  if (!from && !to)
    return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((!from || x[i] >= *from) && (!to || x[i] <= *to)) {
      x[kept] = x[i];
      y[kept++] = y[i];
    }
  x.resize(kept);
  y.resize(kept);
}

result<series_axis> series_axis::read(std::string_view text) {
  series_axis a;
  a.text_ = text;
  if (text == "step")
    a.kind_ = kind::step;
  else if (text == "time")
    a.kind_ = kind::time;
  else if (text == "relative")
    a.kind_ = kind::relative;
  else if (text == "epoch") {
    a.kind_ = kind::metric;
    a.metrics_ = {"epoch", "epochs"};
  } else if (text.starts_with("metric:")) {
    a.kind_ = kind::metric;
    a.metrics_ = {std::string(text.substr(7))};
  } else
    return error{errc::invalid, "x has to be step, time, relative, epoch or metric:NAME"};
  return a;
}

result<curve_source> series_axis::source(const trial_row& of, const std::string& group,
                                         const std::string& metric, series_columns& columns,
                                         const storage::reader& from) const {
  curve_source out;
  auto points = columns.column(of, group, metric, from);
  if (!points)
    return points.error();
  out.points = std::move(*points);
  for (const auto& name : metrics_) {
    auto got = columns.column(of, group, name, from);
    if (!got)
      return got.error();
    if (!out.beside || out.beside->empty())
      out.beside = std::move(*got);
  }
  auto rule = columns.rollback(of, from);
  if (!rule)
    return rule.error();
  out.gone = std::move(*rule);
  return out;
}

series_line series_axis::line(const trial_row& of, const std::string& group, const curve_source& from) const {
  const auto& other = from.beside;
  const auto gone = from.gone->limits(group);
  const running_time running(of.runs);
  series_line out;
  out.x.reserve(from.points->size());
  out.y.reserve(from.points->size());
  auto beside = other ? other->begin() : series_column::const_iterator{};
  const series_point* drawn = nullptr; // the point that was added last
  for (const auto& p : *from.points) {
    if (gone({p.run}, p.steps))
      continue;
    double x = static_cast<double>(p.steps);
    if (kind_ == kind::time)
      x = static_cast<double>(p.at) / micro;
    else if (kind_ == kind::relative)
      x = running.at(p.run, p.at);
    else if (kind_ == kind::metric) {
      while (beside != other->end() && beside->row < p.row)
        ++beside;
      if (beside == other->end() || beside->row != p.row)
        continue;
      x = beside->y;
    }
    out.row = p.row;
    if (drawn && replaces(p, *drawn, group)) {
      out.x.back() = x;
      out.y.back() = p.y;
    } else {
      out.x.push_back(x);
      out.y.push_back(p.y);
    }
    drawn = &p;
  }
  return out;
}

} // namespace troupe::api

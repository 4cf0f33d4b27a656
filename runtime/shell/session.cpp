#include "runtime/shell/session.hpp"
#include "runtime/cli/words.hpp"
#include "runtime/shell/filters.hpp"

#include <algorithm>
#include <poll.h>

namespace troupe::shell {
namespace {

constexpr std::size_t most_kept_rows = 10'000;

} // namespace

session::session(const cli::hooks& node, cli::console& io, std::atomic<bool>& interrupted)
    : node_hooks_(node), io_(io), interrupted_(interrupted), out_(&io.out), in_(&io.in) {}

result<void> session::attach(const std::string& where) {
  if (!where.empty())
    if (auto url = client::master_url(where); !url)
      return error{errc::invalid, "'" + where + "': " + url.error().what};
  attach_ = where;
  api_.reset();
  operator_.reset();
  return {};
}

result<api*> session::cluster() {
  if (!api_) {
    auto where = client::find_server(attach_, io_.env);
    if (!where)
      return where.error();
    api_ = std::make_unique<api>(*std::move(where), client::options_from(io_.env), &interrupted_);
  }
  return api_.get();
}

std::string session::url() const { return api_ ? api_->where().url : attach_; }

result<value> session::get(const std::string& name, const client::query& with) {
  auto to = cluster();
  if (!to)
    return to.error();
  auto got = (*to)->get(route(name), with);
  if (!got && got.error().code == errc::unreachable &&
      (*to)->find_again()) // the node was restarted elsewhere
    got = (*to)->get(route(name), with);
  return got;
}

result<value> session::post(const std::string& name, const value& body) {
  auto to = cluster();
  if (!to)
    return to.error();
  return (operator_ ? operator_.get() : *to)->post(route(name), body);
}

look session::how() const {
  look l{own_format_.value_or(format_), io_.screen, io_.now()};
  if (out_ != &io_.out || capturing_)
    l.screen.interactive = l.screen.colour = false;
  return l;
}

void session::set_own_format(const std::string& name) {
  own_format_ = name == "json"   ? cli::output_format::json
                : name == "csv"  ? cli::output_format::csv
                : name == "yaml" ? cli::output_format::yaml
                                 : cli::output_format::table;
}

void session::begin_rows(std::vector<cli::column> columns) {
  rows_ = answer{shape::rows, value::array(), std::move(columns), {}};
  row_count_ = 0;
  if (!collecting_)
    *out_ << stream_head(rows_, how()) << std::flush;
}

bool session::take_row(const value& row) {
  ++row_count_;
  if (collecting_) {
    rows_.what.push_back(row);
    return rows_.what.size() < most_kept_rows;
  }
  *out_ << stream_row(rows_, row, row_count_ == 1, how()) << std::flush;
  if (row_count_ == 1)
    rows_.what.push_back(row); // for `_`
  return static_cast<bool>(*out_);
}

outcome session::end_rows() {
  if (collecting_) {
    if (rows_.what.size() >= most_kept_rows)
      note("only the first " + std::to_string(most_kept_rows) + " rows are kept");
    return std::move(rows_);
  }
  *out_ << stream_end(how()) << std::flush;
  remember(rows_);
  return {};
}

void session::note(const std::string& text) {
  io_.out.flush();
  io_.err << cli::painted(cli::printable(text), cli::paint::dim, io_.err_screen) << std::endl;
}

bool session::pause(std::chrono::milliseconds time) const {
  auto until = clock::now() + time;
  while (!interrupted()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now());
    if (left.count() <= 0)
      return true;
    ::poll(nullptr, 0, static_cast<int>(std::min<std::int64_t>(left.count(), 100)));
  }
  return false;
}

std::string session::prompt() const {
  auto scope = !actor_.empty() ? "/" + actor_ : !node_.empty() ? "/" + node_ : "";
  return "troupe" + scope + (may_write() ? "# " : "> ");
}

int session::fail(const error& why) {
  io_.out.flush();
  if (interrupted()) {
    io_.err << "interrupted" << std::endl;
    return cli::exit_interrupted;
  }
  auto said = why;
  if (said.code == errc::not_found && said.what.find("actor") != said.what.npos &&
      said.what.find("\nhint: ") == said.what.npos)
    said.what += "\nhint: ps lists the actors";
  said.what = place_ + said.what;
  io_.err << cli::error_text(said, io_.err_screen) << std::flush;
  return cli::exit_of(why.code);
}

// ---- variables

void session::remember(const answer& a) {
  if (a.how == shape::none || a.what.is_null())
    return;
  variables_["_"] = {a.what, id_of(a.what, a.columns)};
}

result<std::string> session::text_of(const std::string& name) const {
  auto dot = name.find('.');
  auto base = name.substr(0, dot);
  auto at = variables_.find(base);
  if (at == variables_.end()) {
    if (base == "_")
      return error{errc::invalid, "there is no last result yet\nhint: ps --top 1"};
    std::vector<std::string> known;
    for (const auto& [n, x] : variables_)
      known.push_back(n);
    auto near = cli::nearest(base, known);
    return error{errc::invalid, "there is no variable '$" + base + "'\nhint: " +
                                  (near ? "did you mean '$" + *near + "'?" : "let " + base + " = trial/7")};
  }
  if (dot == std::string::npos)
    return at->second.id;
  const auto& x =
    at->second.what.is_array() && !at->second.what.empty() ? at->second.what.front() : at->second.what;
  const auto& inner = cli::part(x, name.substr(dot + 1));
  if (inner.is_null())
    return error{errc::invalid,
                 "'$" + base + "' has no '" + name.substr(dot + 1) + "'\nhint: let " + base + " shows it"};
  return inner.is_string() ? inner.get<std::string>() : to_json(inner);
}

lookup session::variables_as_text() const {
  return [this](const std::string& name) { return text_of(name); };
}

} // namespace troupe::shell

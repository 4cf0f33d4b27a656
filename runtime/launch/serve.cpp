#include "runtime/launch/serve.hpp"

#include "runtime/cli/session.hpp"
#include "runtime/launch/daemon.hpp"
#include "runtime/launch/service_notice.hpp"
#include "runtime/launch/signals.hpp"

#include <iostream>
#include <unistd.h>

namespace troupe::launch {
namespace {

class serving {
public:
  serving(node::node_options options, const serve_options& how, daemon_notice notice, bool at_terminal)
      : options_(std::move(options)), how_(how), notice_(std::move(notice)), at_terminal_(at_terminal),
        signals_([this](int number) { hear(number); }) {}

  int run() {
    if (auto ok = start(); !ok)
      return give_up(ok.error());
    std::cout << greeting(at_terminal_ && !how_.daemon)
              << std::endl; // the greeting of a daemon goes into its log
    if (how_.daemon)        // in the background "ready" means that the node accepts work
      if (auto ok = wait_for_agents(); !ok)
        return give_up(ok.error());
    if (how_.daemon)
      notice_.ready(greeting(at_terminal_));
    service_.ready(node_->url().empty() ? "agent" : "serving at " + node_->url());
    service_.watch([this] { return !how_.cluster || how_.cluster->answers(); });
    takes_reloads(true);
    const auto why = node_->wait();
    service_.stopping();
    takes_reloads(false);
    stop();
    return why.what.empty() ? static_cast<int>(cli::exit_done) : cli::exit_after(why);
  }

private:
  result<void> start() {
    if (how_.cluster)
      how_.cluster->attach(options_);
    auto started = node::node::start(options_);
    if (!started)
      return started.error();
    {
      std::lock_guard lock(mutex_);
      node_ = std::move(*started);
      if (asked_ > 0)
        node_->ask_to_stop({errc::invalid, ""});
    }
    if (how_.cluster)
      if (auto ok = how_.cluster->begin(*node_, options_); !ok)
        return ok;
    agent_here_ = options_.agent && !keeps_nodes();
    return agent_here_ ? node_->start_agent() : result<void>{};
  }

  bool keeps_nodes() const { return how_.cluster && how_.cluster->has_nodes(); }

  /// The link holds a code that lets in whoever reads it, so it goes only to a terminal, never into a log.
  std::string greeting(bool with_link) const {
    const bool is_master = !node_->url().empty();
    auto text = is_master ? "troupe is up at " + node_->address()
                          : "troupe agent for the master at " + options_.master_address;
    text += ", data in " + options_.data_dir.string();
    if (const auto page = node_->web_link(with_link ? "admin" : "", ""); !page.empty())
      text += "\nweb page: " + page;
    if (is_master)
      text += std::string("\nstop it with ") + (how_.daemon ? "" : "Ctrl-C or: ") + "troupe down";
    return how_.cluster ? text + how_.cluster->to_do() : text;
  }

  result<void> wait_for_agents() {
    if (agent_here_)
      if (auto ok = node_->wait_registered(std::chrono::seconds(30)); !ok)
        return ok;
    return keeps_nodes() ? how_.cluster->wait_for_nodes() : result<void>{};
  }

  int give_up(const error& why) {
    notice_.failed(why);
    stop();
    return cli::exit_after(why);
  }

  void stop() {
    if (how_.cluster)
      how_.cluster->stop(); // agents end before their master
    if (node_)
      node_->stop();
  }

  void takes_reloads(bool on) {
    std::lock_guard lock(mutex_);
    takes_reloads_ = on;
  }

  /// Runs on the thread of signals.
  void hear(int number) {
    std::lock_guard lock(mutex_);
    if (number == SIGHUP) {
      if (how_.cluster && takes_reloads_ && asked_ == 0)
        how_.cluster->reload([this] { service_.reloading(); }, [this] { service_.ready("serving"); });
      return;
    }
    if (number == SIGUSR1) { // the keeper of nodes sends it: the agent's tasks end with the agent
      if (how_.cluster)
        return;
      if (node_)
        node_->end_tasks_with_agent();
    }
    if (++asked_ > 1) {
      if (node_)
        node_->end_agent(); // kills tasks that must not outlive the agent
      std::_Exit(cli::exit_interrupted);
    }
    if (node_)
      node_->ask_to_stop({errc::invalid, ""});
  }

  node::node_options options_;
  const serve_options& how_;
  daemon_notice notice_;
  bool at_terminal_; ///< whether the command that a person called prints to a terminal
  std::unique_ptr<node::node> node_;
  bool agent_here_ = false;
  service_notice service_; ///< made before any thread, ended before the node that it watches
  std::mutex mutex_;       ///< guards node_ until it has started, and the members below
  int asked_ = 0;          ///< how often it was asked to end
  bool takes_reloads_ = false;
  signal_thread signals_;
};

} // namespace

int serve(node::node_options options, const serve_options& how) {
  daemon_notice notice;
  const bool at_terminal = ::isatty(STDOUT_FILENO);
  if (how.daemon) {
    auto forked = become_daemon(options.data_dir / (how.role + ".log"));
    if (!forked)
      return cli::exit_after(forked.error());
    if (forked->parent)
      return forked->exit_code;
    notice = std::move(forked->notice);
  }
  return serving(std::move(options), how, std::move(notice), at_terminal).run();
}

} // namespace troupe::launch

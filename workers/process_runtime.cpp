#include "workers/process_runtime.hpp"

#include "workers/process_engine.hpp"
#include "workers/task_init/task_format.hpp"

#include <csignal>

namespace troupe::workers {

const char* name(task_phase phase) {
  switch (phase) {
  case task_phase::starting:
    return "starting";
  case task_phase::running:
    return "running";
  case task_phase::frozen:
    return "frozen";
  case task_phase::exited:
    return "exited";
  case task_phase::lost:
    return "lost";
  }
  return "lost";
}

process_runtime::process_runtime(std::unique_ptr<engine> inside) : engine_(std::move(inside)) {}
process_runtime::~process_runtime() = default;

result<std::unique_ptr<process_runtime>> process_runtime::start(const process_runtime_options& options,
                                                                listener tell) {
  auto inside = std::make_unique<engine>(options, std::move(tell));
  if (auto ok = inside->open(); !ok)
    return ok.error();
  return std::unique_ptr<process_runtime>(new process_runtime(std::move(inside)));
}

result<void> process_runtime::launch(const task_spec& spec, owned_fd zygote) {
  if (auto ok = check(spec); !ok)
    return ok;
  return engine_->launch(spec, std::move(zygote));
}

result<std::filesystem::path> process_runtime::prepare(const std::string& id) { return engine_->prepare(id); }
void process_runtime::discard(const std::string& id) { engine_->discard(id); }

result<void> process_runtime::adopt_all() { return engine_->adopt_all(); }

result<void> process_runtime::renew(const std::string& id, std::chrono::milliseconds lease) {
  return engine_->send(id, "renew " + std::to_string(lease.count()) + "\n");
}
void process_runtime::set_leases(std::chrono::milliseconds lease, std::chrono::milliseconds adopt) {
  engine_->set_leases(lease, adopt);
}
result<void> process_runtime::renew_all() { return engine_->renew_all(); }

result<void> process_runtime::freeze(const std::string& id) { return engine_->send(id, "freeze\n"); }

result<void> process_runtime::thaw(const std::string& id, std::chrono::milliseconds lease) {
  return engine_->send(id, "thaw " + std::to_string(lease.count()) + "\n");
}

result<void> process_runtime::signal(const std::string& id, int number) {
  if (number < 1 || number >= NSIG)
    return error{errc::invalid, "task " + id + ": there is no signal " + std::to_string(number)};
  return engine_->send(id, "signal " + std::to_string(number) + "\n");
}
result<void> process_runtime::terminate(const std::string& id) { return signal(id, SIGTERM); }

result<void> process_runtime::kill(const std::string& id) { return engine_->kill(id); }
result<void> process_runtime::forget(const std::string& id) { return engine_->forget(id); }
result<void> process_runtime::drop(const std::string& id) { return engine_->drop(id); }
result<void> process_runtime::drop_spool(const std::string& id) { return engine_->drop_spool(id); }

std::filesystem::path process_runtime::folder(const std::string& id) const {
  return engine_->options().root / id;
}
std::filesystem::path process_runtime::spool(const std::string& id) const {
  return folder(id) / task_format::log_folder;
}

std::vector<task_summary> process_runtime::list() const { return engine_->list(); }
int process_runtime::spares_ready() const { return engine_->spares_ready(); }

} // namespace troupe::workers

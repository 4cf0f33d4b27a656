// `troupe install-service` writes a systemd unit that keeps the cluster up.

#include "runtime/cli/configuration_verbs.hpp"
#include "runtime/cli/session.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <unistd.h>

namespace troupe::cli::verbs {
namespace {

namespace fs = std::filesystem;

/// A word as systemd reads it: in quotes, with % and $ doubled.
std::string word(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
    if (c == '%' || c == '$')
      out += c;
  }
  return out + "\"";
}

std::string unit_text(const std::string& start, bool user) {
  return "# Written by `troupe install-service`.\n"
         "[Unit]\n"
         "Description=Troupe\n" +
         std::string(user ? "" : "Wants=network-online.target\nAfter=network-online.target\n") +
         "\n[Service]\n"
         "Type=notify\n"
         "NotifyAccess=main\n"
         "ExecStart=" +
         start +
         "\n"
         "ExecReload=/bin/kill -HUP $MAINPID\n"
         "WatchdogSec=60\n"
         "Restart=on-failure\n"
         "RestartSec=2\n"
         "RestartPreventExitStatus=2\n"
         "TimeoutStartSec=300\n"
         "TimeoutStopSec=120\n"
         "# Running tasks are adopted by the next start, so a crash of the program does not end them.\n"
         "KillMode=process\n"
         "LimitNOFILE=65536\n"
         "\n[Install]\n"
         "WantedBy=" +
         (user ? "default.target" : "multi-user.target") + "\n";
}

} // namespace

int install_service(session& s, const arguments& given) {
  const bool user = given.has("--user");
  const auto name = given.text("--name", "troupe");
  if (name.empty() || name.size() > 100 ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-@.") !=
        std::string::npos)
    return s.fail({errc::invalid, "--name '" + name + "': a unit's name has letters, digits and _ - . @"});
  fs::path dir = given.text("--dir");
  if (dir.empty() && user)
    dir = fs::path(s.io.env("XDG_CONFIG_HOME").empty() ? s.io.env("HOME") + "/.config"
                                                       : s.io.env("XDG_CONFIG_HOME")) /
          "systemd" / "user";
  else if (dir.empty())
    dir = "/etc/systemd/system";
  std::error_code fault;
  const auto program = fs::read_symlink("/proc/self/exe", fault);
  if (fault)
    return s.fail({errc::io, "cannot read /proc/self/exe: " + fault.message()});
  auto start = word(program.string()) + " up";
  if (given.has("FILE")) {
    const auto file = fs::absolute(given.text("FILE"), fault);
    if (!fs::exists(file, fault))
      return s.fail({errc::invalid, given.text("FILE") + ": " + std::strerror(ENOENT)});
    start += " " + word(file.lexically_normal().string());
  }
  if (given.has("--data-dir"))
    start += " --data-dir " + word(fs::absolute(given.text("--data-dir"), fault).string());
  const auto text = unit_text(start, user);
  const auto path = dir / (name + ".service");
  std::ifstream old(path);
  if (old && std::string(std::istreambuf_iterator<char>(old), {}) != text && !given.has("--replace"))
    return s.fail({errc::conflict, "there is another unit already: " + path.string() +
                                     "\nhint: --replace writes over it, --name NAME beside it"});
  fs::create_directories(dir, fault);
  std::ofstream out(path, std::ios::trunc);
  out << text;
  if (!out.flush()) {
    const bool denied = errno == EACCES || errno == EPERM;
    return s.fail({denied ? errc::denied : errc::io,
                   "cannot write '" + path.string() + "': " + std::strerror(errno) +
                     (user ? "" : "\nhint: as root, or with --user for a service of your own")});
  }
  const std::string manager = user ? "systemctl --user" : "systemctl";
  s.io.out << "wrote " << path.string() << "\nnext: " << manager << " daemon-reload && " << manager
           << " enable --now " << name << "\n";
  if (user)
    s.io.out << "      loginctl enable-linger "
             << "$USER   (to keep it up while nobody is logged in)\n";
  return exit_done;
}

} // namespace troupe::cli::verbs

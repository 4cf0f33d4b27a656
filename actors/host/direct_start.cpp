#include "actors/host/direct_start.hpp"

#include "actors/host/stock_task.hpp"
#include "workers/owned_fd.hpp"

#include <algorithm>
#include <cctype>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_-./=,:@%+").find(c) != std::string_view::npos;
}

/// Whether the word is "python", "python3" or a version such as "python3.11", or a path to one of them.
bool names_python(const std::string& word) {
  const auto name = word.substr(word.rfind('/') + 1);
  if (!name.starts_with("python"))
    return false;
  return std::all_of(name.begin() + 6, name.end(),
                     [](unsigned char c) { return std::isdigit(c) || c == '.'; });
}

/// The first four bytes of the file; fewer where there are no more, none where it cannot be read.
std::string magic_of(const fs::path& file) {
  std::string magic(4, 0);
  workers::owned_fd in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  const auto n = in ? ::read(in.get(), magic.data(), magic.size()) : 0;
  magic.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return magic;
}

constexpr std::string_view image_magic = "\177ELF";

/// Whether the file is a compiled program. A wrapper that is a script is not one: it may set variables, which
/// a process that a zygote forks would not have.
bool is_executable_image(const fs::path& file) { return magic_of(file) == image_magic; }

/// Whether the kernel can run the file. A script without "#!" cannot run by itself: the shell that starts it
/// runs it.
bool runs_by_itself(const fs::path& file) {
  const auto magic = magic_of(file);
  return magic.starts_with("#!") || magic == image_magic;
}

/// Words that a shell carries out itself, or differently from the program of the same name.
constexpr std::string_view shell_words[] = {
  ".",        ":",        "[",      "alias",  "bg",    "break",   "builtin", "case",  "cd",     "command",
  "do",       "echo",     "eval",   "exec",   "exit",  "export",  "false",   "fc",    "fg",     "for",
  "function", "getopts",  "hash",   "if",     "jobs",  "kill",    "let",     "local", "printf", "pwd",
  "read",     "readonly", "return", "select", "set",   "shift",   "source",  "test",  "time",   "times",
  "trap",     "true",     "type",   "ulimit", "umask", "unalias", "unset",   "until", "wait",   "while"};

std::string find_program(const std::string& name, const std::string& path) {
  std::error_code ignored;
  auto found = [&](const fs::path& file) {
    const auto about = fs::status(file, ignored);
    return fs::is_regular_file(about) && (about.permissions() & fs::perms::owner_exec) != fs::perms::none;
  };
  if (name.find('/') != std::string::npos)
    return name[0] == '/' && found(name) ? name : std::string();
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    const fs::path file = fs::path(path.substr(begin, end - begin)) / name;
    begin = end + 1;
    if (file.is_absolute() && found(file))
      return file.string();
  }
  return {};
}

/// The words of a command that is a list, or of a text if `plain_words` finds them there.
std::optional<std::vector<std::string>> words_of(const std::vector<std::string>& entrypoint) {
  if (entrypoint.size() == 3 && entrypoint[0] == "/bin/sh" && entrypoint[1] == "-c")
    return plain_words(entrypoint[2]);
  return entrypoint;
}

} // namespace

std::optional<std::vector<std::string>> plain_words(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t' || c == '\n') {
      if (c == '\n' && command.find_first_not_of(" \t\n", i) != std::string_view::npos &&
          (in_word || !words.empty()))
        return {}; // the shell would have to run a second command
      if (std::exchange(in_word, false))
        words.push_back(std::exchange(word, {}));
    } else if (c == '\'' || c == '"') {
      const auto end = command.find(c, i + 1);
      if (end == std::string_view::npos)
        return {};
      const auto inside = command.substr(i + 1, end - i - 1);
      if (c == '"' && inside.find_first_of("$`\\!") != std::string_view::npos)
        return {};
      word += inside;
      in_word = true;
      i = end;
    } else if (is_plain(c)) {
      word += c;
      in_word = true;
    } else {
      return {};
    }
  }
  if (in_word)
    words.push_back(word);
  if (!words.empty() && words[0] == "exec")
    words.erase(words.begin());
  // NAME=VALUE in front of the program is set by a shell only.
  if (words.empty() || words[0].find('=') != std::string::npos)
    return {};
  return words;
}

std::optional<std::vector<std::string>> program_start_of(const std::vector<std::string>& entrypoint,
                                                         const std::string& path_variable,
                                                         const std::string& workdir) {
  auto words = words_of(entrypoint);
  if (!words || words->empty() || words->front().empty())
    return {};
  const auto& name = words->front();
  const bool text = entrypoint != *words;
  if (text && std::find(std::begin(shell_words), std::end(shell_words), name) != std::end(shell_words))
    return {};
  const bool relative = name[0] != '/' && name.find('/') != std::string::npos;
  const auto file = find_program(relative ? workdir + "/" + name : name, path_variable);
  if (file.empty() || !runs_by_itself(file))
    return {};
  return words;
}

std::optional<direct_start> direct_start_of(const std::vector<std::string>& entrypoint,
                                            const std::string& path_variable) {
  auto plain = words_of(entrypoint);
  if (!plain)
    return {};
  auto words = std::move(*plain);
  if (words.size() < 2 || !names_python(words[0]) || words[1].empty() || words[1][0] == '-')
    return {};
  direct_start out;
  out.program = find_program(words[0], path_variable);
  if (out.program.empty() || !is_executable_image(out.program))
    return {};
  const fs::path script = fs::path(task_workdir) / words[1];
  const auto inside = script.lexically_normal().lexically_relative(task_workdir);
  if (inside.empty() || *inside.begin() == "..")
    return {};
  out.script = inside.string();
  out.argv = std::move(words);
  return out;
}

std::vector<std::string> direct_variables(const std::vector<std::string>& env) {
  std::map<std::string, std::string> all;
  for (const auto& pair : env) {
    const auto equals = pair.find('=');
    all[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  // The entrypoint script sets these:
  all["PATH"] = all["PYTHONUSERBASE"] + "/bin:" + all["PATH"];
  if (all["HOME"].empty() || all["HOME"] == "/")
    all["HOME"] = all["DET_WORKDIR"];
  // Bash itself sets these:
  all["PWD"] = task_workdir;
  if (all["SHLVL"].empty())
    all["SHLVL"] = "0";
  all.erase("_");
  std::error_code ignored;
  if (auto it = all.find("OLDPWD"); it != all.end() && !fs::is_directory(it->second, ignored))
    all.erase(it);
  std::vector<std::string> out;
  for (const auto& [name, text] : all)
    out.push_back(name + "=" + text);
  return out;
}

} // namespace troupe

#include "runtime/node/places.hpp"

#include "runtime/client/find_server.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

fs::path first_that_exists(std::initializer_list<fs::path> candidates) {
  std::error_code ignored;
  for (const auto& path : candidates)
    if (fs::exists(path, ignored))
      return fs::weakly_canonical(path, ignored);
  return {};
}

/// Whether the first python3 on PATH belongs to a virtual or Conda environment: then tasks get that one. The
/// shims of a version manager do not count, because the Python behind them lacks the packages that ./setup
/// installs.
bool path_begins_with_an_environment() {
  const auto path = client::process_environment("PATH");
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    const fs::path folder = path.substr(begin, end - begin);
    begin = end + 1;
    std::error_code ignored;
    if (folder.empty() || !fs::exists(folder / "python3", ignored))
      continue;
    const auto top = folder.lexically_normal().parent_path();
    return fs::exists(top / "pyvenv.cfg", ignored) || fs::exists(top / "conda-meta", ignored);
  }
  return false;
}

/// The file that holds this code: the program, or the shared library that an embedding program has loaded.
result<fs::path> own_file() {
  Dl_info own{}, program{};
  const bool known = ::dladdr(reinterpret_cast<void*>(&find_places), &own) != 0;
  std::error_code fault;
  if (known && ::dladdr(reinterpret_cast<void*>(::getauxval(AT_PHDR)), &program) != 0 &&
      own.dli_fbase != program.dli_fbase) {
    auto file = fs::canonical(own.dli_fname, fault);
    return fault ? result<fs::path>{error{errc::io, std::string("cannot find ") + own.dli_fname + ": " +
                                                      fault.message()}}
                 : file;
  }
  auto file = fs::read_symlink("/proc/self/exe", fault);
  return fault ? result<fs::path>{error{errc::io, "cannot read /proc/self/exe: " + fault.message()}} : file;
}

/// Looks for `below` in the folders above `here`, the nearest first; a library lies at most three folders
/// below its prefix.
fs::path above(const fs::path& here, const fs::path& below) {
  fs::path at = here;
  for (int i = 0; i < 4 && at.has_relative_path(); ++i, at = at.parent_path())
    if (auto found = first_that_exists({at / below}); !found.empty())
      return found;
  return {};
}

} // namespace

result<places> find_places() {
  auto file = own_file();
  if (!file)
    return file.error();
  const auto here = file->parent_path();
  places out;
  out.programs = here;
  out.troupe_task = first_that_exists({here / "troupe-task"});
  if (out.troupe_task.empty())
    out.troupe_task = above(here, fs::path("libexec") / "troupe" / "troupe-task");
  if (out.troupe_task.empty())
    out.troupe_task = above(here, "troupe-task"); // the programs of a build tree lie below its top
  if (out.troupe_task.empty())
    return error{errc::not_found,
                 "troupe-task is missing beside '" + here.string() + "'\nhint: ./setup build"};
  out.python = above(here, fs::path("share") / "troupe" / "python");
  if (!out.python.empty() && file->filename().string().find(".so") != std::string::npos)
    out.programs = out.python.parent_path().parent_path().parent_path() / "bin";
  if (out.python.empty())
    out.python = above(here, fs::path("workers") / "python");
  if (out.python.empty())
    out.python = first_that_exists({fs::path(TROUPE_SOURCE_DIR) / "workers" / "python"});
  if (out.python.empty())
    return error{errc::not_found, "the Python package `troupe` is missing beside '" + here.string() + "'"};
  if (auto named = client::process_environment("TROUPE_PYTHON_BIN"); !named.empty())
    out.python_bin = named;
  else if (!path_begins_with_an_environment())
    out.python_bin =
      first_that_exists({here.parent_path().parent_path() / ".venv" / "bin" / "python3"}).empty()
        ? fs::path()
        : here.parent_path().parent_path() / ".venv" / "bin";
  return out;
}

} // namespace troupe::node

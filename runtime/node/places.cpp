#include "runtime/node/places.hpp"

#include "runtime/client/find_server.hpp"

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

/// Whether the first python3 on PATH is that of a virtual or Conda environment: then tasks get that one. The shims of a
/// version manager are none; what they lead to lacks the packages that ./setup installs.
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

} // namespace

result<places> find_places() {
  std::error_code fault;
  auto here = fs::read_symlink("/proc/self/exe", fault).parent_path();
  if (fault)
    return error{errc::io, "cannot read /proc/self/exe: " + fault.message()};
  places out;
  out.programs = here;
  out.troupe_task =
    first_that_exists({here / "troupe-task", here.parent_path() / "libexec" / "troupe" / "troupe-task"});
  if (out.troupe_task.empty())
    return error{errc::not_found, "troupe-task is missing beside '" + here.string() + "'\nhint: ./setup build"};
  out.python = first_that_exists({here.parent_path() / "share" / "troupe" / "python",
                                  here.parent_path().parent_path() / "workers" / "python",
                                  fs::path(TROUPE_SOURCE_DIR) / "workers" / "python"});
  if (out.python.empty())
    return error{errc::not_found, "the Python package `troupe` is missing beside '" + here.string() + "'"};
  if (auto named = client::process_environment("TROUPE_PYTHON_BIN"); !named.empty())
    out.python_bin = named;
  else if (!path_begins_with_an_environment())
    out.python_bin = first_that_exists({here.parent_path().parent_path() / ".venv" / "bin" / "python3"}).empty()
                       ? fs::path()
                       : here.parent_path().parent_path() / ".venv" / "bin";
  return out;
}

} // namespace troupe::node

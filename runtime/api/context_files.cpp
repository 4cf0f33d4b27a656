#include "runtime/api/context_files.hpp"

#include "workers/archive_calls.hpp"

#include <functional>
#include <memory>

namespace troupe::api {
namespace {

struct reader_close {
  void operator()(archive* a) const { archive_read_free(a); }
};

std::string plain(std::string path) {
  while (path.starts_with("./"))
    path.erase(0, 2);
  while (path.ends_with('/'))
    path.pop_back();
  return path;
}

/// Calls `each` for every entry until it returns true.
result<void> walk(const std::string& bytes,
                  const std::function<result<bool>(archive*, const context_file&)>& each) {
  if (bytes.empty())
    return {};
  if (auto loaded = archive_library::load(); !loaded)
    return loaded.error();
  const utf8_names names;
  std::unique_ptr<archive, reader_close> a{archive_read_new()};
  archive_read_support_filter_gzip(a.get());
  archive_read_support_format_tar(a.get());
  const auto fault = [&] {
    const char* text = archive_error_string(a.get());
    return error{errc::corrupt, std::string("the stored files cannot be read: ") + (text ? text : "")};
  };
  if (archive_read_open_memory(a.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    return fault();
  for (;;) {
    archive_entry* e = nullptr;
    const int got = archive_read_next_header(a.get(), &e);
    if (got == ARCHIVE_EOF)
      return {};
    if (got < ARCHIVE_WARN)
      return fault();
    context_file one{plain(path_of(e)), archive_entry_filetype(e) == AE_IFDIR, archive_entry_size(e), 0};
    if (one.path.empty() || one.path == ".")
      continue;
    auto found = each(a.get(), one);
    if (!found)
      return found.error();
    if (*found)
      return {};
  }
}

} // namespace

result<std::vector<context_file>> context_files(const std::string& bytes) {
  std::vector<context_file> all;
  auto done = walk(bytes, [&](archive*, const context_file& one) -> result<bool> {
    all.push_back(one);
    return false;
  });
  return done ? result<std::vector<context_file>>(std::move(all)) : done.error();
}

result<std::string> context_file_bytes(const std::string& bytes, const std::string& path) {
  std::string out;
  bool found = false;
  auto done = walk(bytes, [&](archive* a, const context_file& one) -> result<bool> {
    if (one.folder || one.path != path)
      return false;
    found = true;
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    while (archive_read_data_block(a, &block, &size, &offset) == ARCHIVE_OK)
      out.append(static_cast<const char*>(block), size);
    return true;
  });
  if (!done)
    return done.error();
  return found ? result<std::string>(std::move(out))
               : error{errc::not_found, "the experiment has no file '" + path.substr(0, 200) + "'"};
}

} // namespace troupe::api

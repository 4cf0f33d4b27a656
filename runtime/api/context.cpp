#include "runtime/api/context.hpp"

#include "runtime/api/fields.hpp"
#include "workers/archive_calls.hpp"

#include <map>
#include <memory>
#include <sodium.h>
#include <vector>

namespace troupe::api {
namespace {

constexpr std::size_t max_name_bytes = 10 << 10, max_entries = 200'000;

error bad_entry(const std::string& path, const std::string& what) {
  return {errc::invalid, "context: '" + path.substr(0, 200) + "' " + what};
}

/// The plain form of a path: "./a//b/" -> "a/b"; nullopt where the path is absolute or leaves the context.
std::optional<std::string> inner_path(std::string_view path) {
  if (path.starts_with('/'))
    return std::nullopt;
  std::vector<std::string_view> kept;
  for (;;) {
    auto end = path.find('/');
    auto part = path.substr(0, end);
    if (part == "..") {
      if (kept.empty())
        return std::nullopt;
      kept.pop_back();
    } else if (!part.empty() && part != ".")
      kept.push_back(part);
    if (end == path.npos)
      break;
    path.remove_prefix(end + 1);
  }
  std::string out;
  for (auto part : kept)
    out += (out.empty() ? "" : "/") + std::string(part);
  return out;
}

/// Follows links by their texts, as the kernel would inside the unpacked context. Fails where one leaves the
/// context or turns in a circle.
result<void> check_link(const std::string& from, const std::map<std::string, std::string>& links) {
  std::string path = from;
  for (int step = 0; step < 40; ++step) {
    // The first prefix of the path that is a link is replaced.
    bool moved = false;
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
      auto prefix = path.substr(0, end);
      if (auto link = links.find(prefix); link != links.end()) {
        auto base = prefix.substr(0, prefix.rfind('/') == prefix.npos ? 0 : prefix.rfind('/'));
        auto rest = end == path.npos ? std::string{} : path.substr(end);
        auto next =
          link->second.starts_with('/')
            ? std::nullopt
            : inner_path(base + "/./" == "/./" ? link->second + rest : base + "/" + link->second + rest);
        if (!next)
          return bad_entry(from, "is a link that leaves the context (to '" + link->second.substr(0, 200) +
                                   "'); copy the file in instead");
        path = *next;
        moved = true;
        break;
      }
      if (end == path.npos)
        break;
    }
    if (!moved)
      return {};
  }
  return bad_entry(from, "is a link that turns in a circle");
}

struct reader_close {
  void operator()(archive* a) const { archive_read_free(a); }
};
struct writer_close {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct entry_free {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};
using archive_in = std::unique_ptr<archive, reader_close>;
using archive_out = std::unique_ptr<archive, writer_close>;
using entry_ptr = std::unique_ptr<archive_entry, entry_free>;

la_ssize_t append_bytes(archive*, void* to, const void* bytes, std::size_t count) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

archive_out gzip_into(std::string& out, bool raw) {
  archive_out a{archive_write_new()};
  archive_write_add_filter_gzip(a.get());
  archive_write_set_filter_option(a.get(), "gzip", "compression-level", "3");
  if (raw)
    archive_write_set_format_raw(a.get());
  else
    archive_write_set_format_pax_restricted(a.get());
  archive_write_set_bytes_in_last_block(a.get(), 1);
  archive_write_open(a.get(), &out, nullptr, append_bytes, nullptr);
  return a;
}

error archive_fault(archive* a) {
  const char* text = archive_error_string(a);
  return {errc::invalid, std::string("context: not a tar or tar.gz: ") + (text ? text : "unknown format")};
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

result<std::string> gzipped(const std::string& bytes) {
  std::string out;
  auto a = gzip_into(out, true);
  entry_ptr e{archive_entry_new()};
  archive_entry_set_filetype(e.get(), AE_IFREG);
  if (archive_write_header(a.get(), e.get()) != ARCHIVE_OK ||
      archive_write_data(a.get(), bytes.data(), bytes.size()) != static_cast<la_ssize_t>(bytes.size()) ||
      archive_write_close(a.get()) != ARCHIVE_OK)
    return archive_fault(a.get());
  return out;
}

/// Checks the path of each entry, which no other entry may have, and counts the entries' bytes.
class context_check {
public:
  result<std::string> add(const std::string& path, std::int64_t bytes, bool folder) {
    if (path.size() > max_name_bytes)
      return bad_entry(path, "has a name over 10 KB");
    auto inner = inner_path(path);
    if (!inner || path.find('\0') != path.npos)
      return bad_entry(path, "leaves the context");
    if (("/" + path + "/").find("/../") != path.npos)
      return bad_entry(path, "has '..' in its path; name it without");
    if (inner->empty() && !folder)
      return bad_entry(path, "is not the name of a file");
    if (bytes < 0 || (total_ += bytes) > max_context_bytes)
      return error{
        errc::invalid,
        "context: the files are over 95 MiB together; leave out what the trials do not need (.detignore)"};
    if (++entries_ > max_entries)
      return error{errc::invalid, "context: more than 200000 entries"};
    if (auto [there, added] = folders_.try_emplace(*inner, folder); !added && !(folder && there->second))
      return bad_entry(path, "is there twice; leave one of them out");
    for (auto end = inner->find('/'); end != inner->npos; end = inner->find('/', end + 1))
      if (const auto above = folders_.find(inner->substr(0, end)); above != folders_.end() && !above->second)
        return bad_entry(path, "lies below '" + above->first.substr(0, 200) + "', which is not a folder");
    if (const auto below = folders_.lower_bound(*inner + "/");
        !folder && below != folders_.end() && below->first.starts_with(*inner + "/"))
      return bad_entry(path, "is not a folder, and '" + below->first.substr(0, 200) + "' lies below it");
    return std::move(*inner);
  }
  bool has(const std::string& path) const { return folders_.contains(path); }
  void link(const std::string& path, const std::string& to) { links_[path] = to; }
  result<void> finish() const {
    for (const auto& [path, to] : links_)
      if (auto fine = check_link(path, links_); !fine)
        return fine;
    return {};
  }

private:
  std::int64_t total_ = 0;
  std::size_t entries_ = 0;
  std::map<std::string, bool> folders_; ///< each path that was added, and whether the entry is a folder
  std::map<std::string, std::string> links_;
};

result<void> check_entry(archive_entry* e, context_check& check) {
  const std::string path = path_of(e);
  const char* to = archive_entry_hardlink(e);
  if (const auto target = inner_path(to ? to : ""); to && !(target && check.has(*target)))
    return bad_entry(path, "is a hard link to something that is not in the context");
  auto inner = check.add(path, archive_entry_size(e), archive_entry_filetype(e) == AE_IFDIR);
  if (!inner)
    return inner.error();
  if (to)
    return {};
  if (archive_entry_filetype(e) == AE_IFLNK) {
    const char* link = archive_entry_symlink(e);
    check.link(*inner, link ? link : "");
  } else if (archive_entry_filetype(e) != AE_IFREG && archive_entry_filetype(e) != AE_IFDIR)
    return bad_entry(path, "is a pipe, socket or device; only files, folders and links can be sent");
  return {};
}

} // namespace

result<std::string> checked_context(std::string bytes) {
  if (auto loaded = archive_library::load(); !loaded)
    return loaded.error();
  const utf8_names names;
  archive_in a{archive_read_new()};
  archive_read_support_filter_gzip(a.get());
  archive_read_support_format_tar(a.get());
  if (archive_read_open_memory(a.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    return archive_fault(a.get());
  context_check check;
  for (;;) {
    archive_entry* e = nullptr;
    int got = archive_read_next_header(a.get(), &e);
    if (got == ARCHIVE_EOF)
      break;
    if (got < ARCHIVE_WARN)
      return archive_fault(a.get());
    if (auto fine = check_entry(e, check); !fine)
      return fine.error();
    if (int skipped = archive_read_data_skip(a.get()); skipped != ARCHIVE_OK && skipped != ARCHIVE_EOF)
      return archive_fault(a.get());
  }
  if (auto fine = check.finish(); !fine)
    return fine.error();
  return is_gzip(bytes) ? result<std::string>(std::move(bytes)) : gzipped(bytes);
}

result<std::string> packed_context(const value& files, const std::string& field) {
  if (auto loaded = archive_library::load(); !loaded)
    return loaded.error();
  const utf8_names names;
  std::string out;
  auto a = gzip_into(out, false);
  context_check check;
  int index = 0;
  for (const auto& one : files) {
    const auto where = field + "[" + std::to_string(index++) + "]";
    fields f{one, where};
    const auto path = f.text("path");
    const bool folder = f.number("type", '0') == '5';
    auto content = from_base64(f.text("content"));
    const auto mode = f.number("mode", folder ? 0755 : 0644), mtime = f.number("mtime");
    const auto uid = f.number("uid"), gid = f.number("gid");
    if (f.number("type", '0') != '0' && !folder)
      f.fault("type", "only files (48) and folders (53) can be sent");
    if (!content)
      f.fault("content", content.error().what);
    if (f.bad())
      return *f.bad();
    auto inner = check.add(path, static_cast<std::int64_t>(content->size()), folder);
    if (!inner)
      return inner.error();
    if (inner->empty())
      continue;
    entry_ptr e{archive_entry_new()};
    archive_entry_set_pathname(e.get(), inner->c_str());
    archive_entry_set_filetype(e.get(), folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(e.get(), static_cast<__LA_MODE_T>(mode & 07777));
    archive_entry_set_mtime(e.get(), mtime, 0);
    archive_entry_set_uid(e.get(), uid);
    archive_entry_set_gid(e.get(), gid);
    archive_entry_set_size(e.get(), folder ? 0 : static_cast<la_int64_t>(content->size()));
    if (archive_write_header(a.get(), e.get()) < ARCHIVE_WARN ||
        (!folder && archive_write_data(a.get(), content->data(), content->size()) !=
                      static_cast<la_ssize_t>(content->size())))
      return archive_fault(a.get());
  }
  if (archive_write_close(a.get()) != ARCHIVE_OK)
    return archive_fault(a.get());
  a.reset();
  return out;
}

result<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  std::size_t count = 0;
  const char* end = nullptr;
  for (int variant : {sodium_base64_VARIANT_ORIGINAL, sodium_base64_VARIANT_ORIGINAL_NO_PADDING,
                      sodium_base64_VARIANT_URLSAFE})
    if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                          text.size(), "\r\n ", &count, &end, variant) == 0 &&
        end == text.data() + text.size()) {
      bytes.resize(count);
      return bytes;
    }
  return error{errc::invalid, "not base64"};
}

std::string to_base64(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();
  return text;
}

} // namespace troupe::api

#pragma once
// libarchive, loaded when it is first needed. `archive_library::load()` goes before the first call.

#include "workers/lazy_library.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

namespace troupe {

using archive_library = lazy_library<"libarchive.so.13">;

#define TROUPE_ARCHIVE(name) TROUPE_LAZY_CALL(archive_library, name)
TROUPE_ARCHIVE(archive_entry_copy_pathname);
TROUPE_ARCHIVE(archive_entry_copy_stat);
TROUPE_ARCHIVE(archive_entry_filetype);
TROUPE_ARCHIVE(archive_entry_free);
TROUPE_ARCHIVE(archive_entry_hardlink);
TROUPE_ARCHIVE(archive_entry_new);
TROUPE_ARCHIVE(archive_entry_pathname);
TROUPE_ARCHIVE(archive_entry_pathname_utf8);
TROUPE_ARCHIVE(archive_entry_perm);
TROUPE_ARCHIVE(archive_entry_set_filetype);
TROUPE_ARCHIVE(archive_entry_set_gid);
TROUPE_ARCHIVE(archive_entry_set_mtime);
TROUPE_ARCHIVE(archive_entry_set_pathname);
TROUPE_ARCHIVE(archive_entry_set_perm);
TROUPE_ARCHIVE(archive_entry_set_size);
TROUPE_ARCHIVE(archive_entry_set_uid);
TROUPE_ARCHIVE(archive_entry_size);
TROUPE_ARCHIVE(archive_entry_symlink);
TROUPE_ARCHIVE(archive_error_string);
TROUPE_ARCHIVE(archive_read_data_block);
TROUPE_ARCHIVE(archive_read_data_skip);
TROUPE_ARCHIVE(archive_read_free);
TROUPE_ARCHIVE(archive_read_new);
TROUPE_ARCHIVE(archive_read_next_header);
TROUPE_ARCHIVE(archive_read_open_filename);
TROUPE_ARCHIVE(archive_read_open_memory);
TROUPE_ARCHIVE(archive_read_support_filter_gzip);
TROUPE_ARCHIVE(archive_read_support_format_tar);
TROUPE_ARCHIVE(archive_write_add_filter_gzip);
TROUPE_ARCHIVE(archive_write_close);
TROUPE_ARCHIVE(archive_write_data);
TROUPE_ARCHIVE(archive_write_free);
TROUPE_ARCHIVE(archive_write_header);
TROUPE_ARCHIVE(archive_write_new);
TROUPE_ARCHIVE(archive_write_open);
TROUPE_ARCHIVE(archive_write_set_bytes_in_last_block);
TROUPE_ARCHIVE(archive_write_set_bytes_per_block);
TROUPE_ARCHIVE(archive_write_set_filter_option);
TROUPE_ARCHIVE(archive_write_set_format_gnutar);
TROUPE_ARCHIVE(archive_write_set_format_pax_restricted);
TROUPE_ARCHIVE(archive_write_set_format_raw);
TROUPE_ARCHIVE(archive_write_set_format_zip);
#undef TROUPE_ARCHIVE

/// While an object lives, names in archives are UTF-8 for this thread. libarchive follows the locale of the
/// thread, and in that of a program that has chosen none it reads and writes only ASCII. Names that are not
/// UTF-8 pass as the bytes that they are; libarchive answers ARCHIVE_WARN for them.
class utf8_names {
public:
  utf8_names() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    before_ = ::uselocale(utf8);
  }
  ~utf8_names() { ::uselocale(before_); }
  utf8_names(const utf8_names&) = delete;
  utf8_names& operator=(const utf8_names&) = delete;

private:
  locale_t before_;
};

/// The name of an entry; empty where it has none.
inline const char* path_of(archive_entry* entry) {
  const char* path = archive_entry_pathname(entry);
  if (!path)
    path = archive_entry_pathname_utf8(entry);
  return path ? path : "";
}

} // namespace troupe

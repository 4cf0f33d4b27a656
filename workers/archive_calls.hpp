#pragma once
// libarchive, loaded when it is first needed. `archive_library::load()` goes before the first call.

#include "workers/lazy_library.hpp"

#include <archive.h>
#include <archive_entry.h>

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

} // namespace troupe

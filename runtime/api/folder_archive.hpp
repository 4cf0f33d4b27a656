#pragma once
// A folder as a tar, tar.gz or zip that is made while it is sent. Symbolic links are left out and never
// followed: what lies in a checkpoint was written by a task.

#include "runtime/api/http.hpp"

#include <filesystem>

namespace troupe::api {

enum class archive_form { tar, tar_gz, zip };

/// errc::not_found where there is no such folder on this host.
result<std::unique_ptr<body_stream>> folder_archive(const std::filesystem::path& folder, archive_form form);

/// One file below `folder` by its relative path. errc::not_found where it is none, or the path leaves the
/// folder.
result<std::unique_ptr<body_stream>> folder_file(const std::filesystem::path& folder,
                                                 const std::string& relative);

} // namespace troupe::api

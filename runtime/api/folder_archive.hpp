#pragma once
// A folder as a tar, tar.gz or zip that is made while it is sent. Symbolic links are left out and never
// followed, because a task wrote what lies in a checkpoint.

#include "runtime/api/http.hpp"

#include <filesystem>

namespace troupe::api {

enum class archive_form { tar, tar_gz, zip };

/// Fails with errc::not_found where this host has no such folder.
result<std::unique_ptr<body_stream>> folder_archive(const std::filesystem::path& folder, archive_form form);

/// One file below `folder` by its relative path. Fails with errc::not_found where that is not a file, or
/// where the path leaves the folder.
result<std::unique_ptr<body_stream>> folder_file(const std::filesystem::path& folder,
                                                 const std::string& relative);

} // namespace troupe::api

#pragma once
// The parts of a configuration that nobody is shown: secrets of a bucket or a registry of images,
// `data.secrets`.

#include "model/result.hpp"
#include "model/value.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace troupe::config {

/// Stands in the place of a secret.
constexpr const char* secret_mask = "********";

/// The configuration of an experiment, a task or a template as it may be shown.
value without_secrets(value config);
/// Does the same for a section `checkpoint_storage`.
value storage_without_secrets(value storage);
/// Does the same for a document of config policies, whose `invariant_config` is a part of a configuration.
value policies_without_secrets(value policies);
/// Does the same for a submitted text. It keeps its form where each secret occurs in it literally; otherwise
/// it is returned as JSON.
std::string text_without_secrets(std::string_view text);
/// The line of a text that begins at `begin`, for people: the value of a secret key (is_secret), or of a key
/// in `secrets`, is blanked, also where it stands below its key. The text need not be readable.
std::string line_without_secrets(std::string_view text, std::size_t begin);
/// Whether the word names a secret, or looks as if it was to: `secretKey`, `AWS_SECRET_ACCESS_KEY`.
bool looks_secret(std::string_view word);
/// A user's text as an error may quote it: of "AWS_SECRET_ACCESS_KEY=x" and "secret_key:x" not the value.
std::string quotable(const std::string& text);
/// Takes the value of `from` in each place of `config` where the mask stands, because a shown configuration
/// may be submitted again.
void restore_secrets(value& config, const value& from);
/// Does the same for a user who may not know the secrets of `from`: only where `anybody`, a configuration
/// that every user may read, has the same secrets. Otherwise returns false and leaves `config` as it was.
bool restore_open_secrets(value& config, const value& from, const value& anybody);
/// The place of a secret for which the mask stands, such as "checkpoint_storage.secret_key"; empty: of none.
std::string masked_secret(value config);
/// Fails with errc::invalid where the mask stands for a secret that nobody can restore. `section` says where
/// `config` lies, such as "invariant_config"; empty: it is the whole.
result<void> check_no_mask(const value& config, const std::string& section = {});
/// Does restore_secrets for a section `checkpoint_storage`.
void restore_storage_secrets(value& storage, const value& from);
/// Calls `found` with each secret in a section `checkpoint_storage`; an address with a login is one.
void each_secret_of_storage(value& storage, const std::function<void(value&)>& found);
/// A web address without user, password and query, which may be a signature (Azure's SAS).
std::string address_without_login(const std::string& address);

} // namespace troupe::config

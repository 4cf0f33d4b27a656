#pragma once
// What of a configuration is shown to nobody: what opens a bucket, a registry of images, and `data.secrets`.

#include "model/value.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace troupe::config {

/// Stands where a secret is.
constexpr const char* secret_mask = "********";

/// The configuration of an experiment, a task or a template as it may be shown.
value without_secrets(value config);
/// The same of a section `checkpoint_storage`.
value storage_without_secrets(value storage);
/// The same of a document of config policies, whose `invariant_config` is a part of a configuration.
value policies_without_secrets(value policies);
/// The same of a submitted text: it keeps its form where each secret stands in it as it is, else it comes as
/// JSON.
std::string text_without_secrets(std::string_view text);
/// Puts what `from` has into each place of `config` where the mask stands: a shown configuration may be
/// submitted again.
void restore_secrets(value& config, const value& from);
/// The same for a user who may not have the secrets of `from`: only where `anybody`, a configuration that
/// every user may have, has the same ones. False, with `config` as it was, where it has others.
bool restore_open_secrets(value& config, const value& from, const value& anybody);
/// restore_secrets of a section `checkpoint_storage`.
void restore_storage_secrets(value& storage, const value& from);
/// `found` with each secret that a section `checkpoint_storage` gives; an address that logs in is one.
void each_secret_of_storage(value& storage, const std::function<void(value&)>& found);
/// An address of the web without its user, password and query, which may be a signature (Azure's SAS).
std::string address_without_login(const std::string& address);

} // namespace troupe::config

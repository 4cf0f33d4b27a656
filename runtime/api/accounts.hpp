#pragma once
// Users with their passwords, and the tokens that users and their tasks show. Thread-safe.
//
// Users and changes of tokens are facts (actors/catalogue/); this class knows the newest fact of each and is
// told of every further one. Two things stay outside of the journal, because they would let a reader of it
// log in: the Argon2id hashes of passwords, and the secret that seals tokens. Tokens are not stored: each
// names its holder and carries a keyed hash, so that a login costs no write and tokens outlive a restart.
// Facts end a token early: a logout names the token's number, and a change of password or standing raises the
// user's generation.

#include "model/facts.hpp"
#include "runtime/api/login_bound.hpp"

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::api {

struct user {
  std::uint64_t id = 0;
  std::string name, display_name;
  bool admin = false, active = true, remote = false;
  std::string password;         ///< name of the password's hash; empty: the password is blank
  std::uint64_t generation = 1; ///< tokens of an earlier generation are void
  time_point modified, last_login;
  std::optional<unix_account> runs_as;
  std::vector<std::string> former; ///< names that the user had, case folded
};

/// The user, experiment or task that a valid token stands for.
struct token_holder {
  /// A view opens the services of one task. The token of a task that is not a trial acts for the task's
  /// owner. A service's token opens that task's service and nothing else.
  enum class kind { session, experiment, allocation, view, task, service } what = kind::session;
  std::uint64_t user_id = 0; ///< user of each token except of an allocation's and a view's
  experiment_id experiment;  ///< set for an experiment's token, which ends with the experiment
  allocation_id allocation;  ///< set for an allocation's token, which ends with the allocation
  task_id task;              ///< set for a view, a task's and a service's token, which end with the task
};

/// What the token of a session says.
struct session_claim {
  std::uint64_t user_id = 0;
  std::string id;   ///< random number of the session, as text
  time_point until; ///< the token is void from then on
};

/// How long access tokens are valid.
struct token_lives {
  duration usual = std::chrono::hours{24 * 30};   ///< life of a token whose request names none
  duration longest = std::chrono::hours{24 * 30}; ///< the longest life that a request may name
};

class accounts {
public:
  struct options {
    std::filesystem::path file;     ///< file with the hashes and the secret; empty: they stay in memory only
    std::filesystem::path old_file; ///< file of an older build, which also holds the users; may be missing
    bool loopback = true;           ///< false: no user may have a blank password
    /// Password of both users of a new cluster; nullopt: a blank one on loopback, otherwise a generated one.
    std::optional<std::string> initial_password;
    duration session_life = std::chrono::hours{7 * 24};
  };
  /// What the journal knows: the newest fact of each user and of each token.
  struct recorded {
    std::vector<user_changed> users;
    std::vector<token_changed> tokens;
  };
  /// Reads or makes the file. Where the journal knows no user, the users of the older file become the first
  /// ones, or else `admin` and `determined`. Where the file is lost, these two get initial passwords again,
  /// and no password lets any other user log in until an admin sets a new one. Fails with errc::corrupt where
  /// a file does not decode, with errc::io where it cannot be read or written.
  static result<std::unique_ptr<accounts>> open(const options& how, time_point now, const recorded& known);
  static result<std::unique_ptr<accounts>> open(const options& how, time_point now) {
    return open(how, now, {});
  }

  /// The facts that `open` decided on; they have to be durable before anybody logs in. Empty on later calls.
  std::vector<catalogue_fact> take_first_facts();
  /// The passwords that `open` generated, with the user's name, to be shown once. Empty on later calls.
  std::vector<std::pair<std::string, std::string>> take_generated();

  /// Takes a fact that is durable now.
  void take(const catalogue_fact& fact);

  struct session {
    std::string token;
    session_claim claim;
    api::user who;
  };
  /// Begins a session. Fails with errc::unauthorized for a wrong name or password, with errc::denied for an
  /// inactive user, and with errc::busy after too many failures (login_bound.hpp). `from` is the caller's
  /// address; without it failures are not counted. `hashed`: the password is the stock client's salted
  /// SHA-512 already. `life`: how long the token is valid; 0: `session_life`. Takes about 60 ms of one core
  /// and 64 MiB unless the password is blank.
  result<session> log_in(const std::string& name, const std::string& password, bool hashed, time_point now,
                         duration life = {}, const std::string& from = {});

  /// Begins a session of a user who has proved in another way who they are. Fails with errc::denied for an
  /// inactive user.
  result<session> begin_session(std::uint64_t user_id, time_point now, duration life = {});

  /// The holder of a valid token; errc::unauthorized for anything else. The caller has to check that the
  /// experiment or allocation still lives.
  result<token_holder> holder(std::string_view token, time_point now) const;
  /// What the valid token of a session says; nullopt for any other token.
  std::optional<session_claim> session_of(std::string_view token, time_point now) const;

  /// An access token. It is valid until `until`, unless it is revoked or its user is not active; logins,
  /// logouts and changes of password do not end it. `id` is random (new_token_id).
  std::string access_token(std::uint64_t user_id, const std::string& id, time_point until) const;
  static std::string new_token_id();

  /// Tokens for the environment of tasks: DET_USER_TOKEN and DET_SESSION_TOKEN. The same arguments give the
  /// same token.
  std::string experiment_token(experiment_id experiment, std::uint64_t user_id) const;
  std::string allocation_token(allocation_id allocation) const;
  /// DET_USER_TOKEN of a task that is not a trial, and the token in the address of its service.
  std::string task_token(task_id task, std::uint64_t user_id) const;
  std::string service_token(task_id task, std::uint64_t user_id) const;

  /// Seals a text with the secret of the tokens, so that it may lie where others can read it. The bytes
  /// differ each time.
  std::string conceal(const std::string& text) const;
  /// The text that `conceal` sealed; errc::corrupt where this cluster did not seal it.
  result<std::string> reveal(const std::string& concealed) const;

  /// A pass to the services of one task, for the user who showed the valid token `shown`. It ends with that
  /// login or access token, and with a change of the user's password. Fails with errc::unauthorized for an
  /// allocation's token.
  result<std::string> view_token(std::string_view shown, task_id task, time_point now) const;

  /// Keeps the hash of a password and returns the hash's name, for user_changed. The hash is on disk when
  /// this returns. Takes as long as `log_in`, without holding the lock. Fails with errc::invalid where a
  /// blank password is not allowed.
  result<std::string> keep_password(const std::string& password, bool hashed);
  /// Writes to disk when each user logged in last. A crash may lose these times, and nothing depends on them.
  void keep_last_logins();

  /// A number that changes whenever a user changes.
  std::uint64_t version() const { return version_; }
  std::vector<user> users() const;
  result<user> find(std::uint64_t id) const;
  result<user> find(const std::string& name) const; ///< ignores case, as no two names differ in case alone
  /// The user who has this name or had it: facts name owners as they were called then.
  result<user> owner(const std::string& name) const;
  /// The present name of the user `owner`; `owner` itself where no such user exists.
  std::string now_named(const std::string& owner) const;

private:
  explicit accounts(options how) : how_(std::move(how)) {}
  std::string sealed(const std::string& claim) const;
  result<void> load(const std::string& bytes);
  result<void> load_older(const std::string& bytes, time_point now);
  result<void> settle(bool initial, time_point now);
  result<std::string> add_hash(const std::string& password);
  result<void> save() const;                                       // the caller holds files_, and not mutex_
  void know_names();                                               // the caller holds mutex_
  const user* named(const std::string& name, bool formerly) const; // the caller holds mutex_

  options how_;
  std::mutex files_; ///< held by the one writer of the file; taken before mutex_
  mutable std::mutex mutex_;
  std::atomic<std::uint64_t> version_ = 0;
  login_bound tries_;
  std::string secret_;
  std::map<std::string, std::string> hashes_; ///< hashes by their names
  std::map<std::uint64_t, user> users_;
  std::unordered_map<std::string, std::uint64_t> names_, folded_, former_; ///< indices of users_
  /// By number of the session: when its token would have ended anyway.
  std::map<std::string, time_point> revoked_;
  std::map<std::uint64_t, time_point> last_logins_;
  std::vector<catalogue_fact> first_facts_;
  std::vector<std::pair<std::string, std::string>> generated_;
};

/// What the stock client sends for a password: "" for a blank one, otherwise hex(sha512(salt + password)).
std::string client_hash(const std::string& password);

} // namespace troupe::api

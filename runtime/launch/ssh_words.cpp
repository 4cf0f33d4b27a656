#include "runtime/launch/ssh_words.hpp"

#include "system/sh_word.hpp"

namespace troupe::launch {

std::vector<std::string> ssh_words(const value& node, const std::string& script) {
  const auto& ssh = node.at("ssh");
  std::vector<std::string> words{"ssh", "-T",
                                 "-o",  "BatchMode=yes",
                                 "-o",  "StrictHostKeyChecking=yes",
                                 "-o",  "ConnectTimeout=10",
                                 "-o",  "ServerAliveInterval=15",
                                 "-p",  std::to_string(ssh.value("port", 22))};
  if (auto key = ssh.value("key", std::string()); !key.empty())
    words.insert(words.end(), {"-i", key, "-o", "IdentitiesOnly=yes"});
  if (auto known = ssh.value("known_hosts", std::string()); !known.empty())
    words.insert(words.end(), {"-o", "UserKnownHostsFile=" + known});
  if (auto user = ssh.value("user", std::string()); !user.empty())
    words.insert(words.end(), {"-l", user});
  words.insert(words.end(), {"--", node.value("host", std::string()), "sh -c " + sh_word(script)});
  return words;
}

std::string command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words)
    out += (out.empty() ? "" : " ") + sh_word(word);
  return out;
}

} // namespace troupe::launch

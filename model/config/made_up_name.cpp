#include "model/config/made_up_name.hpp"

#include "model/rng.hpp"

#include <iterator>

namespace troupe::config {
namespace {

constexpr const char* manners[] = {
  "calm",   "brave", "bright", "clever", "eager",   "gentle", "happy", "keen",  "kind",  "light", "lively",
  "lucky",  "mild",  "neat",   "nimble", "patient", "proud",  "quick", "quiet", "sharp", "shy",   "sincere",
  "steady", "swift", "tidy",   "true",   "warm",    "wise",   "witty", "young", "loyal", "frank"};
constexpr const char* looks[] = {
  "amber", "azure", "blue",  "bronze", "brown",  "copper", "coral",   "crimson", "dusty", "golden", "green",
  "grey",  "ivory", "jade",  "lilac",  "misty",  "mossy",  "olive",   "pale",    "pearl", "plum",   "red",
  "rosy",  "ruby",  "rusty", "sandy",  "silver", "snowy",  "spotted", "striped", "tawny", "violet"};
constexpr const char* beings[] = {
  "otter", "badger", "heron",   "finch", "lynx",   "marten", "newt",  "owl",  "plover",  "raven",  "seal",
  "shrew", "stork",  "swan",    "tern",  "thrush", "toad",   "trout", "vole", "weasel",  "wren",   "beaver",
  "bison", "crane",  "dolphin", "eagle", "falcon", "gecko",  "hare",  "ibis", "jackdaw", "kestrel"};

} // namespace

std::string made_up_name(std::uint64_t bits) {
  rng draw(bits);
  auto pick = [&](const auto& words) { return std::string(words[draw.below(std::size(words))]); };
  auto manner = pick(manners), look = pick(looks);
  return "Experiment (" + manner + "-" + look + "-" + pick(beings) + ")";
}

} // namespace troupe::config

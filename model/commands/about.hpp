#pragma once
// What the table says about a command, besides its fields.

#include "model/authority/authority.hpp"
#include "model/commands/fields.hpp"

#include <array>
#include <chrono>

namespace troupe::commands {

enum class repeat {
  question, ///< changes nothing
  safe,     ///< names a state: a second one finds that state
  by_key,   ///< safe where the caller gave a key; otherwise it acts twice
  again,    ///< acts again
};
const char* name(repeat x);

/// Which actor carries it out.
enum class taker { cluster, trial, allocation, journal, configuration, desk, inspector, actor, task };
const char* name(taker x);

/// How an operator sends it to an actor with the shell's `send`.
struct spoken {
  const char* word = "";                ///< "kill"; empty: operators cannot send it
  std::array<const char*, 3> kinds{};   ///< kinds of actors, such as "trial"; "*": every kind
  std::array<const char*, 2> implied{}; ///< fields that the actor's own name gives
};

struct about {
  const char* name; ///< "trial.kill": the name on the wire, in logs and in the audit log; never renamed
  taker by;
  authority::need right; ///< right of the caller of the API
  repeat again;
  const char* sentence;              ///< for documents: what the command does, and when it is answered
  const char* answers = "{}";        ///< fields of the answer
  spoken operators{};                ///< defaults to nobody
  std::chrono::seconds patience{60}; ///< limit of the wait for the answer; a field `timeout_ms` adds to it
};

template <class C>
concept command = with_fields<C> && requires {
  { C::is } -> std::convertible_to<about>;
};

template <command... Cs>
struct list {
  static constexpr std::size_t size = sizeof...(Cs);
};

template <class List, class C>
inline constexpr bool contains = false;
template <command... Cs, class C>
inline constexpr bool contains<list<Cs...>, C> = (std::is_same_v<Cs, C> || ...);

template <class... Lists>
struct joined;
template <class... As>
struct joined<list<As...>> {
  using type = list<As...>;
};
template <class... As, class... Bs, class... Rest>
struct joined<list<As...>, list<Bs...>, Rest...> : joined<list<As..., Bs...>, Rest...> {};
template <class... Lists>
using join = typename joined<Lists...>::type;

template <class List, class Others>
struct reduced;
template <command... Cs, class Others>
struct reduced<list<Cs...>, Others> {
  using type = join<list<>, std::conditional_t<contains<Others, Cs>, list<>, list<Cs>>...>;
};
/// The commands of `List` that are not in `Others`, in their order.
template <class List, class Others>
using without = typename reduced<List, Others>::type;

} // namespace troupe::commands

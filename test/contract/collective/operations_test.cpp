// Tests what every kind of group computes: each operation for each type is compared with a reference, with
// difficult lengths, addresses and values.

#include "ranks.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace troupe {
namespace {

class Collective : public testing::TestWithParam<member_case> {};
INSTANTIATE_TEST_SUITE_P(Members, Collective, testing::ValuesIn(member_cases), case_name);

const reduce every_reduce[] = {reduce::sum, reduce::average, reduce::min, reduce::max};
const std::size_t lengths[] = {0, 1, 3, 7, 64, 257, 1000, 2049, 5001};

template <class T>
constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

template <class T>
auto widen(T x) {
  if constexpr (is_half<T>)
    return to_float(x);
  else
    return x;
}
template <class T, class From>
T narrow(From x) {
  if constexpr (std::is_same_v<T, f16>)
    return to_f16(float(x));
  else if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(float(x));
  else
    return T(x);
}

template <class T>
T value_of(int rank, std::size_t i) {
  const std::int64_t n = std::int64_t((i * 2654435761u + std::size_t(rank) * 40503u) % 2001) - 1000;
  if constexpr (std::is_same_v<T, std::int64_t>)
    return n * 1'000'000'000'007;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return std::int32_t(n * 1'000'003);
  else
    return narrow<T>(double(n) / 7.0);
}

// The reference computes each element by the definition in the header.
template <class T>
T reduced(const std::vector<T>& by_rank, reduce how) {
  auto sum = widen(by_rank[0]);
  if constexpr (std::is_integral_v<T>) {
    if (how == reduce::average) {
      __int128 exact = 0;
      for (T x : by_rank)
        exact += x;
      return T(exact / __int128(by_rank.size()));
    }
  }
  for (std::size_t r = 1; r < by_rank.size(); ++r) {
    const auto x = widen(by_rank[r]);
    if (how == reduce::min || how == reduce::max) {
      if (sum != sum)
        continue;
      if (x != x || (how == reduce::min ? x < sum : x > sum))
        sum = x;
    } else if constexpr (std::is_integral_v<T>) {
      sum = T(std::make_unsigned_t<T>(sum) + std::make_unsigned_t<T>(x));
    } else {
      sum = sum + x;
    }
  }
  if constexpr (!std::is_integral_v<T>)
    if (how == reduce::average)
      sum = sum / decltype(sum)(by_rank.size());
  return narrow<T>(sum);
}

template <class T>
T reduced_at(int ranks, std::size_t i, reduce how) {
  std::vector<T> by_rank;
  for (int r = 0; r < ranks; ++r)
    by_rank.push_back(value_of<T>(r, i));
  return reduced(by_rank, how);
}

template <class T>
std::vector<T> values(int rank, std::size_t n, std::size_t from = 0) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = value_of<T>(rank, from + i);
  return x;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class F>
void for_every_type(F f) {
  f(f16{});
  f(bf16{});
  f(float{});
  f(double{});
  f(std::int32_t{});
  f(std::int64_t{});
}

#define ASSERT_OK(call)                                                                                      \
  do {                                                                                                       \
    const auto outcome_ = (call);                                                                            \
    ASSERT_TRUE(outcome_) << outcome_.error().what;                                                          \
  } while (false)

TEST_P(Collective, AllReduceGivesTheReductionInOrderOfRank) {
  on_all_ranks(GetParam(), [](collective& c) {
    for_every_type([&]<class T>(T) {
      for (const reduce how : every_reduce)
        for (const std::size_t n : lengths) {
          auto data = values<T>(c.rank(), n);
          ASSERT_OK(c.all_reduce(data, how));
          for (std::size_t i = 0; i < n; ++i)
            ASSERT_TRUE(same_bits(data[i], reduced_at<T>(c.size(), i, how)))
              << name(element_of<T>) << " " << name(how) << " " << n << " at " << i;
        }
    });
  });
}

TEST_P(Collective, AnAddressNeedNotBeAligned) {
  on_all_ranks(GetParam(), [](collective& c) {
    for_every_type([&]<class T>(T) {
      for (std::size_t shift = 1; shift < sizeof(T); ++shift) {
        const std::size_t n = 3001;
        const auto mine = values<T>(c.rank(), n);
        std::vector<std::byte> bytes(n * sizeof(T) + shift);
        std::memcpy(bytes.data() + shift, mine.data(), n * sizeof(T));
        ASSERT_OK(c.all_reduce(std::span<T>(reinterpret_cast<T*>(bytes.data() + shift), n), reduce::sum));
        for (std::size_t i = 0; i < n; ++i) {
          const T expected = reduced_at<T>(c.size(), i, reduce::sum);
          ASSERT_EQ(std::memcmp(bytes.data() + shift + i * sizeof(T), &expected, sizeof(T)), 0)
            << name(element_of<T>);
        }
      }
    });
  });
}

TEST_P(Collective, ANotANumberOfAnyRankIsTheResult) {
  on_all_ranks(GetParam(), [](collective& c) {
    for_every_type([&]<class T>(T) {
      if constexpr (!std::is_integral_v<T>)
        for (const reduce how : every_reduce)
          for (int bad = 0; bad < c.size(); ++bad) {
            std::vector<T> data(67, narrow<T>(c.rank() + 1.0));
            if (c.rank() == bad)
              data[33] = narrow<T>(std::numeric_limits<double>::quiet_NaN());
            ASSERT_OK(c.all_reduce(data, how));
            for (std::size_t i = 0; i < data.size(); ++i)
              ASSERT_EQ(widen(data[i]) != widen(data[i]), i == 33) << name(element_of<T>) << " " << name(how);
          }
    });
  });
}

TEST_P(Collective, InfinitiesAndIntegersAtTheirEndsKeepTheirRules) {
  on_all_ranks(GetParam(), [](collective& c) {
    const int ranks = c.size();
    std::vector<std::int32_t> most(5, std::numeric_limits<std::int32_t>::max());
    ASSERT_OK(c.all_reduce(most, reduce::average));
    ASSERT_THAT(most, testing::Each(std::numeric_limits<std::int32_t>::max()));
    std::vector<std::int64_t> least(5, std::numeric_limits<std::int64_t>::min());
    ASSERT_OK(c.all_reduce(least, reduce::average));
    ASSERT_THAT(least, testing::Each(std::numeric_limits<std::int64_t>::min()));
    ASSERT_OK(c.all_reduce(least, reduce::sum));
    ASSERT_THAT(least, testing::Each(ranks % 2 == 0 ? 0 : std::numeric_limits<std::int64_t>::min()));
    std::vector<double> endless(5, c.rank() == 0 ? HUGE_VAL : 1.0);
    ASSERT_OK(c.all_reduce(endless, reduce::max));
    ASSERT_THAT(endless, testing::Each(HUGE_VAL));
    std::vector<f16> large(5, to_f16(60000));
    ASSERT_OK(c.all_reduce(large, reduce::average)); // the sum is made in float, so it does not overflow
    ASSERT_THAT(large, testing::Each(to_f16(60000)));
  });
}

TEST_P(Collective, BroadcastGivesTheDataOfItsRoot) {
  on_all_ranks(GetParam(), [](collective& c) {
    for_every_type([&]<class T>(T) {
      for (int root = 0; root < c.size(); ++root)
        for (const std::size_t n : lengths) {
          auto data = values<T>(c.rank(), n);
          ASSERT_OK(c.broadcast(data, root));
          ASSERT_EQ(std::memcmp(data.data(), values<T>(root, n).data(), n * sizeof(T)), 0);
        }
    });
    std::vector<float> data(3);
    for (const int root : {-1, c.size()}) {
      const auto refused = c.broadcast(data, root);
      ASSERT_FALSE(refused);
      ASSERT_EQ(refused.error().code, errc::invalid);
    }
  });
}

TEST_P(Collective, AllGatherPutsTheRanksBehindEachOther) {
  on_all_ranks(GetParam(), [](collective& c) {
    const auto ranks = std::size_t(c.size());
    const auto me = std::size_t(c.rank());
    for_every_type([&]<class T>(T) {
      for (const std::size_t n : lengths) {
        std::vector<T> expected;
        for (int r = 0; r < c.size(); ++r)
          for (const T x : values<T>(r, n))
            expected.push_back(x);
        const auto mine = values<T>(c.rank(), n);
        std::vector<T> all(n * ranks);
        ASSERT_OK(c.all_gather(mine, all));
        ASSERT_EQ(std::memcmp(all.data(), expected.data(), all.size() * sizeof(T)), 0);
        std::vector<T> in_place(n * ranks);
        std::copy(mine.begin(), mine.end(), in_place.begin() + std::ptrdiff_t(me * n));
        ASSERT_OK(c.all_gather(std::span<const T>(in_place).subspan(me * n, n), in_place));
        ASSERT_EQ(std::memcmp(in_place.data(), expected.data(), all.size() * sizeof(T)), 0);
      }
    });
    std::vector<float> mine(3), all(3 * ranks + 1);
    ASSERT_EQ(c.all_gather(mine, all).error().code, errc::invalid);
  });
}

TEST_P(Collective, ReduceScatterGivesEachRankItsPart) {
  on_all_ranks(GetParam(), [](collective& c) {
    const auto ranks = std::size_t(c.size());
    const auto me = std::size_t(c.rank());
    for_every_type([&]<class T>(T) {
      for (const reduce how : every_reduce)
        for (const std::size_t n : lengths) {
          auto all = values<T>(c.rank(), n * ranks);
          std::vector<T> mine(n);
          ASSERT_OK(c.reduce_scatter(all, mine, how));
          for (std::size_t i = 0; i < n; ++i)
            ASSERT_TRUE(same_bits(mine[i], reduced_at<T>(c.size(), me * n + i, how)));
          // the same operation in place
          ASSERT_OK(c.reduce_scatter(all, std::span(all).subspan(me * n, n), how));
          ASSERT_EQ(std::memcmp(all.data() + me * n, mine.data(), n * sizeof(T)), 0);
        }
    });
    std::vector<float> mine(3), all(3 * ranks + 1);
    ASSERT_EQ(c.reduce_scatter(all, mine, reduce::sum).error().code, errc::invalid);
  });
}

TEST_P(Collective, AllocatedMemoryIsZeroAlignedAndReducedAsAnyOther) {
  on_all_ranks(GetParam(), [](collective& c) {
    for_every_type([&]<class T>(T) {
      const std::size_t room = 5010;
      auto memory = c.allocate<T>(room);
      ASSERT_TRUE(memory) << memory.error().what;
      ASSERT_EQ(memory->size(), room);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0u);
      for (const T x : *memory)
        ASSERT_TRUE(same_bits(x, T{}));
      for (const reduce how : every_reduce)
        for (const std::size_t n : lengths)
          for (const std::size_t at : {0, 1, 9}) {
            for (std::size_t i = 0; i < room; ++i)
              (*memory)[i] = value_of<T>(c.rank(), i);
            ASSERT_OK(c.all_reduce(std::span<T>(*memory).subspan(at, n), how));
            for (std::size_t i = 0; i < room; ++i)
              ASSERT_TRUE(same_bits((*memory)[i], i >= at && i < at + n ? reduced_at<T>(c.size(), i, how)
                                                                        : value_of<T>(c.rank(), i)))
                << name(element_of<T>) << " " << name(how) << " " << n << " from " << at << " at " << i;
          }
    });
    EXPECT_TRUE(c.allocate<float>(0));
    EXPECT_EQ(c.allocate<double>(std::size_t(-1) / 4).error().code, errc::invalid);
  });
}

TEST_P(Collective, RanksMayGiveOtherPartsOfAllocatedMemoryOrTheirOwn) {
  on_all_ranks(GetParam(), [](collective& c) {
    const std::size_t n = 4001;
    auto one = c.allocate<float>(2 * n);
    auto other = c.allocate<float>(n);
    ASSERT_TRUE(one && other);
    std::vector<float> mine(n);
    const std::span<float> places[] = {mine, *other, std::span<float>(*one).subspan(0, n),
                                       std::span<float>(*one).subspan(n, n)};
    for (std::size_t round = 0; round < 60; ++round) {
      // In some rounds all ranks choose the same place.
      const std::size_t which = round % 5 == 0 ? 1 : (round + std::size_t(c.rank()) * (round / 4)) % 4;
      const auto place = places[which].first(round % 2 == 0 ? n : 600); // several chunks, or one chunk
      std::ranges::copy(values<float>(c.rank(), place.size(), round), place.begin());
      if (round % 3 == 0)
        ASSERT_OK(c.all_reduce_async(place, reduce::sum).wait());
      else
        ASSERT_OK(c.all_reduce(place, reduce::sum));
      for (std::size_t i = 0; i < place.size(); ++i)
        ASSERT_EQ(place[i], reduced_at<float>(c.size(), round + i, reduce::sum))
          << "round " << round << " at " << i;
      std::vector<std::int32_t> small{c.rank()};
      ASSERT_OK(c.broadcast(small, 0));
      ASSERT_EQ(small[0], 0);
    }
    const auto kept = *one;
    one = group_memory<float>();
    other = group_memory<float>();
    auto later = c.allocate<float>(n); // this memory may have the address of the memory that was released
    ASSERT_TRUE(later);
    for (const std::span<float> place : {std::span<float>(*later), std::span<float>(kept).subspan(n, n)}) {
      std::ranges::copy(values<float>(c.rank(), n), place.begin());
      ASSERT_OK(c.all_reduce(place, reduce::max));
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(place[i], reduced_at<float>(c.size(), i, reduce::max));
    }
  });
}

TEST_P(Collective, AGroupedReductionMayBeOfAllocatedMemoryWholeOrInPart) {
  on_all_ranks(GetParam(), [](collective& c) {
    auto memory = c.allocate<double>(9000);
    ASSERT_TRUE(memory);
    std::vector<double> elsewhere(1500);
    const std::span<double> all(*memory);
    for (const bool whole : {true, false, true}) {
      const std::span<double> parts[] = {all.subspan(5000, 4000), all.subspan(0, 0), all.subspan(17, 3),
                                         whole ? all.subspan(100, 1500) : elsewhere};
      for (const auto part : parts)
        std::ranges::copy(values<double>(c.rank(), part.size(), part.size()), part.begin());
      ASSERT_OK(c.all_reduce_grouped(parts, reduce::average));
      for (const auto part : parts)
        for (std::size_t i = 0; i < part.size(); ++i)
          ASSERT_TRUE(same_bits(part[i], reduced_at<double>(c.size(), part.size() + i, reduce::average)))
            << part.size() << " at " << i;
    }
  });
}

TEST_P(Collective, AllocatedMemoryOutlivesItsGroup) {
  on_all_ranks(GetParam(), [&](collective& c) {
    group_memory<float> memory;
    {
      std::vector<int> all(std::size_t(c.size()));
      std::iota(all.begin(), all.end(), 0);
      auto inner = c.group(all);
      ASSERT_TRUE(inner) << inner.error().what;
      auto made = (*inner)->allocate<float>(3000);
      ASSERT_TRUE(made);
      memory = *made;
      std::ranges::fill(memory, 1.0f);
      ASSERT_OK((*inner)->all_reduce(memory, reduce::sum));
    }
    ASSERT_THAT(memory, testing::Each(float(c.size())));
    ASSERT_OK(c.all_reduce(memory, reduce::max)); // another group treats it as ordinary memory
    ASSERT_THAT(memory, testing::Each(float(c.size())));
  });
}

TEST_P(Collective, StartedOperationsRunInOrderAndMixWithOthers) {
  on_all_ranks(GetParam(), [](collective& c) {
    const double ranks = c.size();
    std::vector<std::vector<float>> data(20, std::vector<float>(1500, 1.0f));
    std::vector<pending> handles;
    for (auto& x : data)
      handles.push_back(c.all_reduce_async(x, reduce::sum));
    // Runs after the first operation on the same data.
    handles.push_back(c.all_reduce_async(data[0], reduce::sum));
    std::vector<double> at_once(10, 2.0);
    ASSERT_OK(c.all_reduce(at_once, reduce::sum));
    ASSERT_THAT(at_once, testing::Each(2.0 * ranks));
    ASSERT_TRUE(handles.front().done()); // earlier calls have ended before a later one returns
    for (auto& h : handles) {
      ASSERT_OK(h.wait());
      ASSERT_OK(h.wait());
      ASSERT_TRUE(h.done());
    }
    ASSERT_THAT(data[0], testing::Each(float(ranks * ranks)));
    ASSERT_THAT(data[19], testing::Each(float(ranks)));
    { auto thrown_away = c.all_reduce_async(data[1], reduce::max); }
    ASSERT_OK(pending{}.wait());
  });
}

TEST_P(Collective, AGroupedReductionTreatsEachBuffer) {
  on_all_ranks(GetParam(), [](collective& c) {
    for_every_type([&]<class T>(T) {
      std::vector<std::vector<T>> data;
      std::vector<std::span<T>> parts;
      for (const std::size_t n : {0, 5, 3000, 1, 0, 2500, 7, 0})
        data.push_back(values<T>(c.rank(), n, n));
      for (auto& x : data)
        parts.emplace_back(x);
      ASSERT_OK(c.all_reduce_grouped(parts, reduce::average));
      for (const auto& x : data)
        for (std::size_t i = 0; i < x.size(); ++i)
          ASSERT_TRUE(same_bits(x[i], reduced_at<T>(c.size(), x.size() + i, reduce::average)));
      auto handle = c.all_reduce_grouped_async(std::span<const std::span<T>>{}, reduce::sum);
      ASSERT_OK(handle.wait());
    });
  });
}

TEST_P(Collective, ABarrierHoldsEverybodyUntilTheLastHasCome) {
  std::atomic<int> come{0};
  on_all_ranks(GetParam(), [&](collective& c) {
    for (int round = 1; round <= 50; ++round) {
      ++come;
      ASSERT_OK(c.barrier());
      ASSERT_GE(come.load(), round * c.size());
      ASSERT_OK(c.barrier());
    }
  });
}

TEST_P(Collective, AGroupMayLeaveRanksOutAndOrderThemAnew) {
  on_all_ranks(GetParam(), [](collective& c) {
    std::vector<int> even; // in falling order: 4, 2, 0
    for (int r = (c.size() - 1) / 2 * 2; r >= 0; r -= 2)
      even.push_back(r);
    for (int repeat = 0; repeat < 2 && c.rank() % 2 == 0; ++repeat) {
      auto inner = c.group(even);
      ASSERT_TRUE(inner) << inner.error().what;
      ASSERT_EQ((*inner)->size(), int(even.size()));
      ASSERT_EQ(even[std::size_t((*inner)->rank())], c.rank());
      std::vector<int> all(even.size());
      const std::vector<int> mine{c.rank()};
      ASSERT_OK((*inner)->all_gather(mine, all));
      ASSERT_EQ(all, even);
      std::vector<double> sum{double(c.rank())};
      ASSERT_OK((*inner)->all_reduce(sum, reduce::sum));
      ASSERT_EQ(sum[0], std::accumulate(even.begin(), even.end(), 0.0));
    }
    ASSERT_OK(c.barrier());
    for (const auto& wrong : {std::vector<int>{}, {c.size()}, {-1, c.rank()}, {c.rank(), c.rank()}})
      ASSERT_EQ(c.group(wrong).error().code, errc::invalid);
  });
}

TEST_P(Collective, ManyRandomOperationsInARowAgree) {
  on_all_ranks(GetParam(), [](collective& c) {
    std::uint64_t seed = 42; // all ranks draw the same numbers
    const auto next = [&](std::uint64_t below) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      return (seed >> 33) % below;
    };
    for (int i = 0; i < 300; ++i) {
      const std::size_t n = next(4) == 0 ? next(20000) : next(50);
      auto data = values<float>(c.rank(), n, std::size_t(i));
      switch (next(3)) {
      case 0: {
        ASSERT_OK(c.all_reduce(data, reduce::sum));
        for (std::size_t k = 0; k < n; k += 97)
          ASSERT_EQ(data[k], reduced_at<float>(c.size(), std::size_t(i) + k, reduce::sum));
        break;
      }
      case 1: {
        const int root = int(next(std::uint64_t(c.size())));
        ASSERT_OK(c.broadcast(data, root));
        ASSERT_EQ(data, values<float>(root, n, std::size_t(i)));
        break;
      }
      default:
        ASSERT_OK(c.barrier());
      }
    }
  });
}

} // namespace
} // namespace troupe

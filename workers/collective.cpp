#include "workers/collective.hpp"

#include "workers/collectives/operation_queue.hpp"

#include <cstdlib>

namespace troupe {

const char* name(element type) {
  switch (type) {
  case element::f16:
    return "f16";
  case element::bf16:
    return "bf16";
  case element::f32:
    return "f32";
  case element::f64:
    return "f64";
  case element::i32:
    return "i32";
  case element::i64:
    return "i64";
  }
  return "?";
}

const char* name(reduce how) {
  switch (how) {
  case reduce::sum:
    return "sum";
  case reduce::average:
    return "average";
  case reduce::min:
    return "min";
  case reduce::max:
    return "max";
  }
  return "?";
}

const char* name(operation_kind what) {
  switch (what) {
  case operation_kind::all_reduce:
    return "all_reduce";
  case operation_kind::broadcast:
    return "broadcast";
  case operation_kind::all_gather:
    return "all_gather";
  case operation_kind::reduce_scatter:
    return "reduce_scatter";
  case operation_kind::barrier:
    return "barrier";
  }
  return "?";
}

pending& pending::operator=(pending&& other) noexcept {
  if (this != &other) {
    (void)wait();
    state_ = std::move(other.state_);
  }
  return *this;
}

pending::~pending() { (void)wait(); }

bool pending::done() const { return !state_ || state_->done(); }

result<void> pending::wait() { return state_ ? state_->wait() : result<void>{}; }

namespace {

error invalid(std::string what) { return {errc::invalid, "collective: " + std::move(what)}; }

template <class T>
operation_buffer buffer(std::span<const T> in, std::span<T> out, std::size_t count) {
  return {reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()), count};
}

template <class T>
operation all_reduce_of(std::span<const std::span<T>> data, reduce how) {
  operation x{operation_kind::all_reduce, element_of<T>, how};
  for (const auto& part : data) {
    const auto b = buffer<T>(part, part, part.size());
    if (&part == data.data())
      x.first = b;
    else
      x.more.push_back(b);
  }
  return x;
}

} // namespace

template <class T>
collective& typed_collective<T>::self() {
  return static_cast<collective&>(*this);
}

template <class T>
result<void> typed_collective<T>::all_reduce(std::span<T> data, reduce how) {
  return self().perform(
    {operation_kind::all_reduce, element_of<T>, how, 0, buffer<T>(data, data, data.size())});
}

template <class T>
pending typed_collective<T>::all_reduce_async(std::span<T> data, reduce how) {
  return self().start(
    {operation_kind::all_reduce, element_of<T>, how, 0, buffer<T>(data, data, data.size())});
}

template <class T>
result<void> typed_collective<T>::all_reduce_grouped(std::span<const std::span<T>> data, reduce how) {
  return self().perform(all_reduce_of<T>(data, how));
}

template <class T>
pending typed_collective<T>::all_reduce_grouped_async(std::span<const std::span<T>> data, reduce how) {
  return self().start(all_reduce_of<T>(data, how));
}

template <class T>
result<void> typed_collective<T>::broadcast(std::span<T> data, int root) {
  if (root < 0 || root >= self().size())
    return invalid("broadcast from rank " + std::to_string(root) + ": the ranks are 0 to " +
                   std::to_string(self().size() - 1));
  return self().perform(
    {operation_kind::broadcast, element_of<T>, reduce::sum, root, buffer<T>(data, data, data.size())});
}

template <class T>
result<void> typed_collective<T>::all_gather(std::span<const T> mine, std::span<T> all) {
  if (all.size() != mine.size() * std::size_t(self().size()))
    return invalid("all_gather of " + std::to_string(mine.size()) + " elements by " +
                   std::to_string(self().size()) + " ranks needs room for as many times as many, not " +
                   std::to_string(all.size()));
  return self().perform(
    {operation_kind::all_gather, element_of<T>, reduce::sum, 0, buffer<T>(mine, all, mine.size())});
}

template <class T>
result<void> typed_collective<T>::reduce_scatter(std::span<const T> all, std::span<T> mine, reduce how) {
  if (all.size() != mine.size() * std::size_t(self().size()))
    return invalid("reduce_scatter into " + std::to_string(mine.size()) + " elements by " +
                   std::to_string(self().size()) + " ranks takes as many times as many, not " +
                   std::to_string(all.size()));
  return self().perform(
    {operation_kind::reduce_scatter, element_of<T>, how, 0, buffer<T>(all, mine, mine.size())});
}

template class typed_collective<f16>;
template class typed_collective<bf16>;
template class typed_collective<float>;
template class typed_collective<double>;
template class typed_collective<std::int32_t>;
template class typed_collective<std::int64_t>;

result<std::shared_ptr<std::byte>> collective::memory(std::size_t bytes) {
  constexpr std::size_t line = 64;
  void* const made = std::calloc(1, bytes + line); // a large calloc takes pages as they are used
  if (!made)
    return error{errc::no_space, "collective: no memory for " + std::to_string(bytes) + " bytes"};
  auto* const first =
    static_cast<std::byte*>(made) + (line - reinterpret_cast<std::uintptr_t>(made) % line) % line;
  return std::shared_ptr<std::byte>(first, [made](std::byte*) { std::free(made); });
}

error collective::too_much(std::size_t count, std::size_t width) {
  return invalid("allocate of " + std::to_string(count) + " elements of " + std::to_string(width) +
                 " bytes: at most " + std::to_string(most_allocated) + " bytes");
}

result<void> collective::barrier() { return perform({operation_kind::barrier}); }

} // namespace troupe

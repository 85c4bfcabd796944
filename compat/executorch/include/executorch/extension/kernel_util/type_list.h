// Lists of types.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace executorch::extension::kernel_util_internal {

template <class... Items>
struct typelist final {
  typelist() = delete;
};

template <class List>
struct size;
template <class... Items>
struct size<typelist<Items...>> : std::integral_constant<size_t, sizeof...(Items)> {};

template <size_t Index, class List>
struct element;
template <class Head, class... Tail>
struct element<0, typelist<Head, Tail...>> {
  using type = Head;
};
template <size_t Index, class Head, class... Tail>
struct element<Index, typelist<Head, Tail...>> : element<Index - 1, typelist<Tail...>> {};
template <size_t Index, class List>
using element_t = typename element<Index, List>::type;

template <class Default, class List>
struct head_with_default {
  using type = Default;
};
template <class Default, class Head, class... Tail>
struct head_with_default<Default, typelist<Head, Tail...>> {
  using type = Head;
};
template <class Default, class List>
using head_with_default_t = typename head_with_default<Default, List>::type;

// The list without its first `count` items, or none if it is shorter.
template <class List, size_t count>
struct drop_if_nonempty {
  using type = List;
};
template <class Head, class... Tail, size_t count>
struct drop_if_nonempty<typelist<Head, Tail...>, count> {
  using type = std::conditional_t<
      count == 0, typelist<Head, Tail...>,
      typename drop_if_nonempty<typelist<Tail...>, (count == 0 ? 0 : count - 1)>::type>;
};
template <class List, size_t count>
using drop_if_nonempty_t = typename drop_if_nonempty<List, count>::type;

}  // namespace executorch::extension::kernel_util_internal

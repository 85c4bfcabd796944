// What restricts the tokens of one text: a grammar's state, as sessions see it.
#pragma once

#include <cstdint>
#include <vector>

namespace rushlight::llm {

class TokenFilter {
 public:
  virtual ~TokenFilter() = default;
  // Sets a bit for each token of the vocabulary that may come next, and clears the others.
  virtual void mask(uint32_t* bits) = 0;
  // False if the token may not come next; nothing has changed then.
  virtual bool accept(int32_t token) = 0;
  // Appends tokens that must come next, if there are any. They are accepted by accept().
  virtual void forced(std::vector<int32_t>* tokens) = 0;
  // True if the text may end here, and whether it must.
  virtual bool can_end() const = 0;
};

}  // namespace rushlight::llm

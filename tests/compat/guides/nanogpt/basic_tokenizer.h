// Texts to tokens of a vocab.json and back, by the longest token that fits; the interface of the
// tokenizer that the guide downloads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

class BasicTokenizer {
 public:
  explicit BasicTokenizer(const std::string& path) {
    std::ifstream file(path);
    const std::string json((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    size_t at = 0;
    while ((at = json.find('"', at)) != std::string::npos) {
      const std::string token = read_string(json, &at);
      at = json.find(':', at) + 1;
      const int64_t id = std::strtoll(json.c_str() + at, nullptr, 10);
      ids_[token] = id;
      texts_[id] = token;
      longest_ = std::max(longest_, token.size());
    }
    if (ids_.empty()) {
      std::cerr << path << " has no tokens\n";
      std::exit(1);
    }
  }

  std::vector<int64_t> encode(const std::string& text) const {
    std::vector<int64_t> tokens;
    for (size_t at = 0; at < text.size();) {
      size_t length = std::min(longest_, text.size() - at);
      auto found = ids_.end();
      for (; length > 0 && found == ids_.end(); --length)
        found = ids_.find(text.substr(at, length));
      if (found != ids_.end()) tokens.push_back(found->second);
      at += length + 1;
    }
    return tokens;
  }

  std::string decode(const std::vector<int64_t>& tokens) const {
    std::string text;
    for (const int64_t token : tokens) {
      const auto found = texts_.find(token);
      if (found != texts_.end()) text += found->second;
    }
    return text;
  }

 private:
  // Reads a string of JSON from its quotation mark on.
  static std::string read_string(const std::string& json, size_t* at) {
    std::string text;
    size_t i = *at + 1;
    for (; i < json.size() && json[i] != '"'; ++i) {
      if (json[i] != '\\') {
        text += json[i];
        continue;
      }
      const char escape = json[++i];
      if (escape != 'u') {
        text += escape == 'n'   ? '\n'
                : escape == 't' ? '\t'
                : escape == 'r' ? '\r'
                : escape == 'b' ? '\b'
                : escape == 'f' ? '\f'
                                : escape;
        continue;
      }
      const unsigned code = static_cast<unsigned>(std::stoul(json.substr(i + 1, 4), nullptr, 16));
      i += 4;
      // GPT-2 writes a byte that is no visible character as a letter from U+0100 on.
      text += static_cast<char>(code == 0x120 ? ' ' : code == 0x10a ? '\n' : code);
    }
    *at = i + 1;
    return text;
  }

  std::map<std::string, int64_t> ids_;
  std::map<int64_t, std::string> texts_;
  size_t longest_ = 1;
};

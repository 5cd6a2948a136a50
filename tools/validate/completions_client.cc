// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/completions_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kMaxAnswer = 64 << 20;  // bytes
constexpr int32_t kNoOneId = -1;         // for a text that several tokens share
constexpr double kLogProbSlack = 1e-3;   // rounding may give log probabilities above 0

// Reduces the address to the part that all paths share. Removes an API key that would be sent
// unencrypted.
void CheckAddress(ServerArguments& server) {
  std::string& url = server.url;
  const bool https = url.starts_with("https://");
  if ((!https && !url.starts_with("http://")) || url.find_first_of("@?#") != url.npos) {
    throw UsageError(
        fmt::format("--served {}: expected an address such as http://127.0.0.1:8000, without a "
                    "user, '?' or '#'; put a key into OPENAI_API_KEY",
                    Quoted(url)));
  }
  const std::string_view rest = std::string_view(url).substr(https ? 8 : 7);
  const std::string_view host = rest.substr(0, rest.find_first_of(":/"));
  if (!https && host != "localhost" && host != "127.0.0.1") server.api_key.clear();
  for (const std::string_view end : {"/", "/v1"})
    if (url.ends_with(end)) url.resize(url.size() - end.size());
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto* body = static_cast<std::string*>(user);
  if (body->size() + size > kMaxAnswer) return 0;
  body->append(data, size);
  return size;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& stop_requested = *static_cast<const std::function<bool()>*>(user);
  return stop_requested && stop_requested() ? 1 : 0;
}

Json Post(const ServerArguments& server, const std::string& url, const Json& body) {
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  const auto set = [&](CURLoption option, auto value) {
    if (curl_easy_setopt(handle.get(), option, value) != CURLE_OK)
      throw ResourceError(fmt::format("this version of libcurl does not support option {}",
                                      static_cast<int>(option)));
  };
  const std::string request = body.dump();
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      curl_slist_append(nullptr, "Content-Type: application/json"), curl_slist_free_all);
  std::string answer;
  char reason[CURL_ERROR_SIZE] = "";
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(std::min<int64_t>(10, server.timeout_seconds)));
  set(CURLOPT_TIMEOUT, static_cast<long>(server.timeout_seconds));
  set(CURLOPT_USERAGENT, "oscar-validate");
  set(CURLOPT_ERRORBUFFER, reason);
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, &answer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
  set(CURLOPT_XFERINFODATA, &server.stop_requested);
  if (!server.api_key.empty()) {
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    set(CURLOPT_XOAUTH2_BEARER, server.api_key.c_str());
  }
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_POSTFIELDS, request.c_str());
  const CURLcode code = curl_easy_perform(handle.get());
  if (code == CURLE_ABORTED_BY_CALLBACK) throw Interrupted("stopped; no results were kept");
  if (code == CURLE_WRITE_ERROR)
    throw InputError(
        fmt::format("{}: the server's answer is longer than {} bytes", url, kMaxAnswer));
  if (code != CURLE_OK) {
    throw ResourceError(fmt::format(
        "{}: {}; check that the server is running and that --served-timeout {} seconds is enough "
        "for an answer",
        url, Escaped(reason[0] != 0 ? reason : curl_easy_strerror(code)), server.timeout_seconds));
  }
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    throw InputError(fmt::format(
        "{}: the server answered with status {}, expected 200: {}{}", url, status, Escaped(answer),
        status == 401 || status == 403
            ? "; put a key into OPENAI_API_KEY, which is sent over https or to this machine"
            : ""));
  }
  return ParseStrictJson(answer, url);
}

// Returns the id of each text that a token adds after another token; kNoOneId if several add the
// same.
std::unordered_map<std::string, int32_t> IdsOfTexts(const Tokenizer& tokenizer) {
  std::vector<int32_t> text = tokenizer.Encode("a", false);
  const size_t before = tokenizer.Decode(text, false).size();
  text.push_back(0);
  std::unordered_map<std::string, int32_t> ids;
  for (; text.back() < tokenizer.vocab_size(); ++text.back()) {
    const std::string whole = tokenizer.Decode(text, false);
    if (whole.size() <= before) continue;
    const auto [found, is_new] = ids.emplace(whole.substr(before), text.back());
    if (!is_new) found->second = kNoOneId;
  }
  return ids;
}

struct AnsweredToken {
  std::string text;
  Json log_prob;
  std::optional<int64_t> id;  // if the server reports it
};

// Reads logprobs in either form: of completions (vLLM, SGLang) or of chats (llama.cpp).
std::vector<AnsweredToken> TokensOf(const Json& choice, const std::string& where) {
  if (!choice.contains("logprobs") || !choice["logprobs"].is_object()) {
    throw InputError(
        where + ": the answer has no logprobs; use a server that supports them, or switch them on");
  }
  const Json& logprobs = choice["logprobs"];
  std::vector<AnsweredToken> tokens;
  if (logprobs.contains("content")) {
    for (const Json& token : JsonArray(logprobs, "content", where)) {
      tokens.push_back(
          {JsonString(token, "token", where), JsonMember(token, "logprob", where), {}});
      if (token.contains("id")) tokens.back().id = JsonInt(token, "id", where);
    }
    return tokens;
  }
  const Json &texts = JsonArray(logprobs, "tokens", where),
             &values = JsonArray(logprobs, "token_logprobs", where);
  if (texts.size() != values.size()) {
    throw InputError(fmt::format("{}: the answer has {} tokens but {} logprobs", where,
                                 texts.size(), values.size()));
  }
  const Json ids = choice.value("token_ids", Json());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].is_string())
      throw InputError(where + ": the answer has a token that is not text");
    tokens.push_back({texts[i].get<std::string>(), values[i], {}});
    if (ids.is_array() && ids.size() == texts.size() && ids[i].is_number_integer())
      tokens.back().id = ids[i].get<int64_t>();
  }
  return tokens;
}

}  // namespace

CompletionsClient::CompletionsClient(ServerArguments server, LazyTokenizer tokenizer,
                                     int64_t vocab_size)
    : server_(std::move(server)), tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size) {
  CheckAddress(server_);
}

int64_t CompletionsClient::IdOf(const std::string& token, const std::string& where) {
  if (ids_.empty() && tokenizer_) ids_ = IdsOfTexts(*tokenizer_);
  const auto found = ids_.find(token);
  if (found != ids_.end()) return found->second;
  // A token that is a part of a character has no valid text.
  if (token.empty() || token.find("\xEF\xBF\xBD") != token.npos || token.starts_with("bytes:"))
    return kNoOneId;
  throw InputError(
      fmt::format("{}: the server generated {}, which is not a token of this model; it serves "
                  "another model or tokenizes differently",
                  where, Quoted(token)));
}

ServedCompletion CompletionsClient::Complete(const std::vector<int32_t>& prompt,
                                             int64_t max_tokens) {
  const std::string where = server_.url + "/v1/completions";
  // Only some servers support the members after "logprobs"; the others ignore them.
  Json body = {{"prompt", prompt},     {"max_tokens", max_tokens}, {"temperature", 0},
               {"logprobs", 1},        {"ignore_eos", true},       {"return_token_ids", true},
               {"cache_prompt", false}};
  if (!server_.model.empty()) body["model"] = server_.model;
  const Json answer = Post(server_, where, body);
  const Json& choices = JsonArray(answer, "choices", where);
  if (choices.empty()) throw InputError(where + ": the answer has no choices");
  const int64_t sent = std::ssize(prompt),
                read = JsonInt(answer.value("usage", Json::object()), "prompt_tokens", sent, where);
  if (read != sent) {
    throw InputError(
        fmt::format("{}: the server read {} tokens, but the prompt has {}; it adds or removes "
                    "tokens, or reads token ids as text",
                    where, read, sent));
  }
  ServedCompletion completion;
  for (const AnsweredToken& token : TokensOf(choices[0], where)) {
    const int64_t id = token.id ? *token.id : IdOf(token.text, where);
    if (id == kNoOneId) break;
    const double log_prob = token.log_prob.is_number() ? token.log_prob.get<double>() : 1;
    if (id < 0 || id >= vocab_size_ || !(log_prob <= kLogProbSlack)) {
      throw InputError(
          fmt::format("{}: the answer has token {} with logprob {}, expected an id below {} and a "
                      "logprob of at most 0",
                      where, id, token.log_prob.dump(), vocab_size_));
    }
    completion.ids.push_back(static_cast<int32_t>(id));
    completion.log_probs.push_back(log_prob);
  }
  return completion;
}

}  // namespace oscar

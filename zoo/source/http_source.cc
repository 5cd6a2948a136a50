// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/source/http_source.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>

#include "capture/files/quote.h"
#include "linalg/base/error.h"
#include "zoo/store/zoo_format.h"

namespace oscar {
namespace {

constexpr size_t kMaxHeaders = 256 << 10;  // bytes

struct CurlClose {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, CurlClose>;

std::string UrlPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  const std::string copy = text;
  curl_free(text);
  return copy;
}

bool IsThisMachine(const std::string& host) {
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

struct HttpBase {
  std::string url;     // without a slash at the end
  bool local = false;  // http is allowed because it is this machine
};

HttpBase ParseBase(const std::string& address) {
  const std::unique_ptr<CURLU, CurlClose> url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK)
    throw UsageError(
        fmt::format("{} is not the address of a zoo; expected https://host/path", Quoted(address)));
  if (!UrlPart(url.get(), CURLUPART_USER).empty() ||
      !UrlPart(url.get(), CURLUPART_PASSWORD).empty()) {
    throw UsageError(
        "the address must not contain a user or password, because they would appear in logs; put a "
        "token into OSCAR_ZOO_TOKEN");
  }
  if (!UrlPart(url.get(), CURLUPART_QUERY).empty() ||
      !UrlPart(url.get(), CURLUPART_FRAGMENT).empty())
    throw UsageError(
        fmt::format("{}: the address of a zoo must not contain '?' or '#'", Quoted(address)));
  const std::string scheme = UrlPart(url.get(), CURLUPART_SCHEME),
                    host = UrlPart(url.get(), CURLUPART_HOST);
  if (scheme != "https" && !(scheme == "http" && IsThisMachine(host))) {
    throw UsageError(fmt::format(
        "{}: use https://; http:// is allowed only on this machine (127.0.0.1, localhost)",
        Quoted(address)));
  }
  HttpBase base{UrlPart(url.get(), CURLUPART_URL), scheme == "http"};
  while (base.url.ends_with('/')) base.url.pop_back();
  return base;
}

// One request in progress. Callbacks store errors here, because an exception must not pass through
// libcurl.
struct Transfer {
  CURL* handle = nullptr;
  const ReadRequest* request = nullptr;
  const ByteSink* sink = nullptr;
  const std::function<void()>* alive = nullptr;
  bool ranged = false;       // a range was requested
  uint64_t skip = 0;         // bytes to skip, which come before the offset
  uint64_t delivered = 0;    // bytes passed to the sink
  bool judged = false;       // status and headers were checked
  bool drop = false;         // the body is not the file's content
  bool range_wrong = false;  // wrong range: request the whole file instead
  std::string refused = {};  // why a repeated request would fail too
  std::string content_range = {}, encoding = {};
  size_t header_bytes = 0;  // total over all redirects
  std::exception_ptr thrown = {};
};

std::string HeaderValue(std::string_view line) {
  line.remove_prefix(line.find(':') + 1);
  const size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r\n");
  return first == line.npos ? "" : std::string(line.substr(first, last - first + 1));
}

size_t OnHeader(char* data, size_t, size_t size, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  if ((transfer->header_bytes += size) > kMaxHeaders) {
    transfer->refused = "the headers of the server's answer are too long";
    return 0;
  }
  const std::string_view line(data, size);
  const auto is = [&](std::string_view name) {
    return line.size() > name.size() && line[name.size()] == ':' &&
           std::equal(name.begin(), name.end(), line.begin(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
  };
  if (line.starts_with("HTTP/")) transfer->content_range = transfer->encoding = "";  // next hop
  if (is("content-range")) transfer->content_range = HeaderValue(line);
  if (is("content-encoding")) transfer->encoding = HeaderValue(line);
  return size;
}

// Whether "bytes FIRST-LAST/TOTAL" begins at the requested offset and has the requested file size.
bool RangeFits(const std::string& text, const ReadRequest& request) {
  if (!text.starts_with("bytes ")) return false;
  uint64_t first = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 6, end, first);
  if (parsed.ec != std::errc() || first != request.offset) return false;
  const size_t slash = text.find('/');
  if (slash == text.npos || !request.size || text.substr(slash) == "/*") return slash != text.npos;
  return text.substr(slash + 1) == std::to_string(*request.size);
}

// Checks the response before its first byte is used. Returns false if it must not be used.
bool Judge(Transfer* transfer) {
  transfer->judged = true;
  long status = 0;
  curl_off_t length = -1;
  curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(transfer->handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  const ReadRequest& request = *transfer->request;
  if (status != 200 && status != 206) {
    transfer->range_wrong = status == 416 && transfer->ranged;
    transfer->drop = true;
    return false;
  }
  if (!transfer->encoding.empty() && transfer->encoding != "identity") {
    transfer->refused = fmt::format("the server sends compressed data ({}) that was not requested",
                                    Quoted(transfer->encoding, 40));
    return false;
  }
  if (status == 206 && (!transfer->ranged || !RangeFits(transfer->content_range, request))) {
    transfer->range_wrong = true;
    return false;
  }
  transfer->skip = status == 206 ? 0 : request.offset;
  if (request.size && length >= 0) {
    const uint64_t expected = *request.size - (request.offset - transfer->skip);
    if (static_cast<uint64_t>(length) != expected) {
      transfer->refused =
          fmt::format("the server announces {} bytes, expected {}", length, expected);
      return false;
    }
  }
  return true;
}

size_t OnBody(char* data, size_t, size_t size, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  if (!transfer->judged && !Judge(transfer)) return 0;
  if (transfer->drop) return 0;
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const uint64_t skipped = std::min<uint64_t>(transfer->skip, bytes.size());
  transfer->skip -= skipped;
  bytes = bytes.subspan(skipped);
  const ReadRequest& request = *transfer->request;
  const auto& total = request.size;
  if (total && bytes.size() > *total - request.offset - transfer->delivered) {
    transfer->refused = fmt::format("the server sends more than the expected {} bytes", *total);
    return 0;
  }
  try {
    if (!bytes.empty()) (*transfer->sink)(bytes);
  } catch (...) {
    transfer->thrown = std::current_exception();
    return 0;
  }
  transfer->delivered += bytes.size();
  return size;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto* transfer = static_cast<Transfer*>(user);
  try {
    if (*transfer->alive) (*transfer->alive)();
    return 0;
  } catch (...) {
    transfer->thrown = std::current_exception();
    return 1;
  }
}

// Allows http only to this machine, whatever a name resolves to and wherever a redirect points.
curl_socket_t OpenLocalSocket(void* user, curlsocktype, curl_sockaddr* address) {
  bool local = false;
  if (address->family == AF_INET) {
    sockaddr_in ip4;
    std::memcpy(&ip4, &address->addr, sizeof(ip4));
    local = (ntohl(ip4.sin_addr.s_addr) >> 24) == 127;
  } else if (address->family == AF_INET6 && address->addrlen >= sizeof(sockaddr_in6)) {
    sockaddr_in6 ip6;
    std::memcpy(&ip6, &address->addr, sizeof(ip6));
    local = IN6_IS_ADDR_LOOPBACK(&ip6.sin6_addr);
  }
  if (!local) {
    static_cast<Transfer*>(user)->refused =
        "http:// is allowed only to this machine, but the address leads to another machine; use "
        "https://";
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Describes failures that a retry cannot fix.
std::string Permanent(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
      return "the server's certificate is not trusted or has another name; if the zoo uses its own "
             "root certificate, give it with --ca";
    case CURLE_SSL_CACERT_BADFILE:
      return "the file of trusted certificates cannot be read";
    case CURLE_TOO_MANY_REDIRECTS:
      return "too many redirects";
    case CURLE_UNSUPPORTED_PROTOCOL:
      return "the server redirects to an address that is not https";
    default:
      return "";
  }
}

class HttpReader {
 public:
  HttpReader(HttpBase base, TransferOptions options)
      : base_(std::move(base)), options_(std::move(options)) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    handle_.reset(curl_easy_init());
    if (!handle_) throw ResourceError("libcurl cannot be started; out of memory");
  }

  ReadEnd Read(const ReadRequest& request, const ByteSink& sink) {
    Transfer transfer;
    ReadEnd end = Once(request, sink, request.offset > 0, &transfer);
    // Requests the whole file if the server's answer to a range is wrong.
    if (transfer.range_wrong) {
      transfer = {};
      end = Once(request, sink, false, &transfer);
    }
    return end;
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    if (curl_easy_setopt(handle_.get(), option, value) != CURLE_OK)
      throw ResourceError(fmt::format("this version of libcurl does not support option {}",
                                      static_cast<int>(option)));
  }

  void Prepare(const std::string& url, bool ranged, Transfer* transfer) {
    curl_easy_reset(handle_.get());  // connections stay open
    Set(CURLOPT_URL, url.c_str());
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_PROTOCOLS_STR, base_.local ? "http" : "https");
    Set(CURLOPT_REDIR_PROTOCOLS_STR, base_.local ? "http" : "https");
    if (base_.local) {
      Set(CURLOPT_NOPROXY, "*");
      Set(CURLOPT_OPENSOCKETFUNCTION, &OpenLocalSocket);
      Set(CURLOPT_OPENSOCKETDATA, transfer);
    }
    Set(CURLOPT_FOLLOWLOCATION, 1L);
    Set(CURLOPT_MAXREDIRS, static_cast<long>(options_.max_redirects));
    Set(CURLOPT_UNRESTRICTED_AUTH, 0L);
    Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    Set(CURLOPT_SSL_VERIFYPEER, 1L);
    Set(CURLOPT_SSL_VERIFYHOST, 2L);
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!options_.ca_file.empty()) {
      Set(CURLOPT_CAINFO, options_.ca_file.c_str());
      Set(CURLOPT_CAPATH, nullptr);
    }
    Set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_seconds));
    Set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options_.slowest));
    Set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_seconds));
    Set(CURLOPT_USERAGENT, "oscar-zoo");
    Set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    if (!options_.token.empty()) {
      Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
      Set(CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
    }
    if (ranged) Set(CURLOPT_RANGE, (std::to_string(transfer->request->offset) + "-").c_str());
    Set(CURLOPT_HEADERFUNCTION, &OnHeader);
    Set(CURLOPT_HEADERDATA, transfer);
    Set(CURLOPT_WRITEFUNCTION, &OnBody);
    Set(CURLOPT_WRITEDATA, transfer);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    Set(CURLOPT_XFERINFODATA, transfer);
  }

  ReadEnd Once(const ReadRequest& request, const ByteSink& sink, bool ranged, Transfer* transfer) {
    const std::string url = base_.url + "/" + request.file;
    transfer->handle = handle_.get();
    transfer->request = &request;
    transfer->sink = &sink;
    transfer->alive = &options_.alive;
    transfer->ranged = ranged;
    Prepare(url, ranged, transfer);
    char reason[CURL_ERROR_SIZE] = "";
    Set(CURLOPT_ERRORBUFFER, reason);
    const CURLcode code = curl_easy_perform(handle_.get());
    if (code == CURLE_OK && !transfer->judged) Judge(transfer);  // the body was empty
    if (transfer->thrown) std::rethrow_exception(transfer->thrown);
    if (transfer->range_wrong)
      return {.broken = "the server answered with a different range than requested"};
    if (!transfer->refused.empty()) throw InputError(fmt::format("{}: {}", url, transfer->refused));
    if (transfer->drop) return Status(url);
    if (code == CURLE_OK) {
      if (request.size && request.offset + transfer->delivered < *request.size)
        return {.broken = "the server ended the transfer early"};
      return {};
    }
    const std::string text = reason[0] != 0 ? reason : curl_easy_strerror(code);
    if (const std::string permanent = Permanent(code); !permanent.empty())
      throw InputError(fmt::format("{}: {} ({})", url, permanent, Escaped(text)));
    return {.broken = Escaped(text)};
  }

  // Interprets the status of a response that is not the file.
  ReadEnd Status(const std::string& url) {
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status == 404 || status == 410) return {.found = false};
    if (status == 408 || status == 429 || status >= 500 || status < 200)
      return {.broken = fmt::format("the server answered with status {}", status)};
    if (status == 401 || status == 403)
      throw InputError(fmt::format(
          "{}: the server answered with status {}; access needs a token, which is read from {}",
          url, status, options_.token_from));
    throw InputError(
        fmt::format("{}: the server answered with status {}, expected 200", url, status));
  }

  HttpBase base_;
  TransferOptions options_;
  CurlHandle handle_;
};

}  // namespace

ZooSource HttpSource(const std::string& address, const TransferOptions& options) {
  HttpBase base = ParseBase(address);
  ZooSource source;
  source.address = base.url;
  const auto reader = std::make_shared<HttpReader>(std::move(base), options);
  source.read = [reader](const ReadRequest& request, const ByteSink& sink) {
    return reader->Read(request, sink);
  };
  source.index = [read = source.read, url = source.address, options] {
    const ZooSource self{url, {}, read, {}};
    const auto text = ReadSource(self, kIndexFile, kIndexJsonLimits.max_bytes, options);
    if (!text) {
      throw InputError(
          fmt::format("{}/{}: does not exist; this is not a zoo, or its index was not copied", url,
                      kIndexFile));
    }
    return ParseIndex(*text, url + "/" + kIndexFile);
  };
  return source;
}

}  // namespace oscar

// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Machine-written text: JSON, log lines, YAML and XML.
#include "capture/text/corpus/genres.h"

namespace oscar {
namespace {

std::span<const Rule> Rules() {
  static const std::vector<Rule> rules = {
      {"city", {"Lisbon", "Osaka", "Tromsø", "Nairobi", "Quito", "Gdańsk", "Perth", "Montréal"}},
      {"product",
       {"desk lamp", "bicycle pump", "rain jacket", "travel kettle", "notebook", "camera strap"}},
      {"status", {"shipped", "pending", "returned", "cancelled", "delivered"}},
      {"service", {"auth", "billing", "search", "gateway", "mailer", "scheduler"}},
      {"level", {"INFO", "INFO", "DEBUG", "WARN", "ERROR"}},
      {"flag", {"true", "false"}},
      {"hex", {"«10-99»a«10-99»f«0-9»", "c0ffee«10-99»", "b«100-999»d«10-99»", "e«1000-9999»7a"}},
      {"date", {"20«10-25»-0«1-9»-«10-28»", "20«10-25»-1«0-2»-0«1-9»"}},
      {"clock", {"0«0-9»:«10-59»:«10-59»", "1«0-9»:«10-59»:«10-59»", "2«0-3»:«10-59»:«10-59»"}},
      {"json",
       {R"({
  "id": «10000-99999»,
  "customer": {"city": "«city»", "since": "«date»", "newsletter": «flag»},
  "items": [
    {"product": "«product»", "quantity": «1-9», "price": «5-90».«10-99»},
    {"product": "«product»", "quantity": «1-9», "price": «5-90».«10-99»}
  ],
  "status": "«status»",
  "note": null
})",
        R"({
  "type": "Feature",
  "geometry": {"type": "Point", "coordinates": [«10-99».«1000-9999», -«10-89».«1000-9999»]},
  "properties": {"name": "«city»", "elevation": «2-2900», "tags": ["«service»", "«status»"]}
})",
        R"({"event": "«service».«status»", "at": "«date»T«clock»Z", "trace": "«hex»",
 "payload": {"retries": «0-9», "ok": «flag», "latency_ms": [«1-90», «1-90», «100-900»]}})"}},
      {"log",
       {"«date» «clock» «level» [«service»] request «hex» finished in «2-900» ms status=200",
        "«date» «clock» «level» [«service»] user=«1000-9999» action=«status» item=\"«product»\"",
        "«date» «clock» WARN [«service»] queue length «100-999» above threshold «50-99»",
        "«date» «clock» ERROR [«service»] connection to 10.0.«0-9».«2-250»:«1024-9999» refused; "
        "retrying in «1-30» s",
        "«date» «clock» «level» [«service»] cache hit ratio 0.«10-99» over «1000-9000» lookups",
        "192.168.«0-9».«2-250» - - [«date» «clock»] \"GET /«service»/«hex» HTTP/1.1\" 200 "
        "«100-9000»"}},
      {"yaml",
       {R"(- name: «s=service»-«1-20»
  image: registry.example/«s»:«1-9».«0-20».«0-9»
  replicas: «1-9»
  resources:
    limits: {cpu: "«1-8»", memory: «1-64»Gi}
  env:
    REGION: «city»
    LOG_LEVEL: «level»
  healthcheck:
    path: /«s»/health
    interval: «5-60»s)",
        R"(- name: «s=service» nightly
  on:
    schedule: "«0-5» «1-9» * * *"
  steps:
    - run: make «s»
    - run: ./publish --city "«city»" --tag «hex»
      timeout: «5-90»m
  notify: [«service», «service»])"}},
      {"xml",
       {R"(  <order id="«10000-99999»" status="«status»">
    <customer city="«city»" since="«date»"/>
    <line quantity="«1-9»"><![CDATA[«product»]]></line>
    <total currency="EUR">«10-990».«10-99»</total>
  </order>)",
        R"(  <station name="«city»">
    <reading at="«date»T«clock»" unit="°C">-«1-20».«0-9»</reading>
    <reading at="«date»T«clock»" unit="°C">«1-35».«0-9»</reading>
    <!-- sensor «hex» replaced -->
  </station>)"}},
  };
  return rules;
}

}  // namespace

std::string MakeStructured(SplitMix64& random, size_t target_bytes, size_t variant) {
  Grammar grammar(Rules(), random);
  const auto fill = [&](std::string_view symbol, std::string_view separator) {
    return Fill(target_bytes, separator, [&] { return grammar.Make(symbol); });
  };
  switch (variant % 4) {
    case 0:
      return "[" + fill("json", ",\n") + "]\n";
    case 1:
      return fill("log", "\n") + "\n";
    case 2:
      return "version: 2\nservices:\n" + fill("yaml", "\n") + "\n";
    default:
      return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<export>\n" + fill("xml", "\n") +
             "\n</export>\n";
  }
}

}  // namespace oscar

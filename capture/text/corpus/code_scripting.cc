// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/corpus/code.h"

namespace oscar {

std::span<const Rule> ScriptingLanguageRules() {
  static const std::vector<Rule> rules = {
      {"python_head", {R"("""Tools for «main» files: reading, checking and summarizing them."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

log = logging.getLogger(__name__)


)"}},
      {"py_type", {"int", "str", "float", "bool", "list[int]", "str | None"}},
      {"python_item",
       {R"(@dataclass(frozen=True)
class «^n=noun»«^p=part»:
    """One «n» as it stands in the file."""

    «f=part»: int
    «adjective»: bool = False
    «noun»s: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.«f» < 0:
            raise ValueError(f"«message»: {self.«f»}")

)",
        R"(def «v=verb»_«n=noun»s(path: Path, *, limit: int = «number») -> dict[str, int]:
    """Counts «a=adjective» «n»s per «p=part»; «why»."""
    counts: dict[str, int] = defaultdict(int)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            row = json.loads(line)
            if not row.get("«a»"):
                continue
            counts[row["«p»"]] += 1
            if number >= limit:
                log.warning("%s:%d: stopped at the limit", path, number)
                break
    return dict(counts)

)",
        R"(def test_«v=verb»_«n=noun»_«a=adjective»(tmp_path):
    target = tmp_path / "«n»s.jsonl"
    target.write_text('{"«a»": true, "«p=part»": "«x=noun»"}\n' * «c=2-30»)
    result = «v»_«n»s(target)
    assert result["«x»"] == «c»
    assert sum(result.values()) == «c»

)",
        R"(async def «verb»_«n=noun»(session, «p=part»: «py_type», retries: int = «2-9»):
    for attempt in range(retries):
        try:
            async with session.get(f"https://«host»/«n»/{«p»}") as reply:
                reply.raise_for_status()
                return [x["«part»"] for x in await reply.json() if x["«adjective»"]]
        except TimeoutError:
            log.info("attempt %d of %d: «message»", attempt + 1, retries)
    raise RuntimeError("«message»")

)",
        R"(def «verb»_matrix(rows: list[list[float]]) -> list[float]:
    width = len(rows[0])
    totals = [0.0] * width
    for row in rows:
        assert len(row) == width, "«message»"
        totals = [t + x * «2-9» for t, x in zip(totals, row)]
    return [t / len(rows) for t in totals]

)"}},
      {"sql_head", {R"(-- Reporting schema for «main»s.
CREATE TABLE «main» (
    id          BIGINT PRIMARY KEY,
    created_at  TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    «p=part»    INTEGER CHECK («p» >= 0)
);

)"}},
      {"sql_item",
       {R"(SELECT n.«p=part», COUNT(*) AS «n=noun»_count, AVG(n.«q=part») AS mean_«q»
FROM «n» AS n
LEFT JOIN «main» AS m ON m.id = n.«main»_id
WHERE n.«a=adjective» = TRUE
  AND n.created_at >= DATE '20«10-25»-0«1-9»-«10-28»'
GROUP BY n.«p»
HAVING COUNT(*) > «number»
ORDER BY «n»_count DESC
LIMIT «5-50»;
)",
        R"(CREATE TABLE «n=noun» (
    id        SERIAL PRIMARY KEY,
    «main»_id BIGINT REFERENCES «main» (id) ON DELETE CASCADE,
    «part»    NUMERIC(12, 2) NOT NULL,
    «adjective» BOOLEAN DEFAULT FALSE
);
CREATE INDEX idx_«n»_«p=part» ON «n» («p»);
)",
        R"(UPDATE «n=noun»
SET «p=part» = «p» + «number», «adjective» = FALSE
WHERE id IN (SELECT «n»_id FROM «noun» WHERE «part» BETWEEN «1-9» AND «10-99»);
)",
        R"(INSERT INTO «n=noun» (id, «p=part», «adjective») VALUES
    («100-999», «10-99».50, TRUE),
    («100-999», «10-99».25, FALSE),
    («100-999», «10-99».75, TRUE);
)",
        R"(WITH ranked AS (
    SELECT «p=part», «q=noun»_id,
           ROW_NUMBER() OVER (PARTITION BY «p» ORDER BY created_at DESC) AS position
    FROM «q»
)
SELECT * FROM ranked WHERE position <= «2-9»;  -- «why»
)"}},
      {"shell_head", {R"sh(#!/usr/bin/env bash
# Nightly work on «main»s. Usage: «main»-nightly.sh DIRECTORY
set -euo pipefail

root="${1:?directory missing}"
log() { printf '%s %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

)sh"}},
      {"shell_item",
       {R"(«verb»_«n=noun»s() {
  local «p=part»="$1" count=0
  while IFS=, read -r id value rest; do
    [[ -z "$id" || "$id" == \#* ]] && continue
    count=$((count + value))
    if (( count > «number» )); then
      log "«message»: $id"
      return 1
    fi
  done < "$root/«n»s.csv"
  echo "$«p» $count"
}
)",
        R"(find "$root/«n=noun»s" -name '*.«part»' -mtime +«2-30» -print0 |
  xargs -0 -r -n «10-99» gzip --best
log "compressed old «n»s"
)",
        R"(for host in «host» «host»; do
  if ! curl --fail --silent --max-time «5-30» "https://$host/health" > /dev/null; then
    log "«message» on $host"
    failed+=("$host")
  fi
done
)",
        R"(grep -E '^[0-9]+ «adjective»' "$root/«n=noun».log" |
  awk '{ sum[$2] += $3 } END { for (k in sum) print k, sum[k] }' |
  sort -k2,2nr | head -n «5-40» > "$root/«n»-«part».txt"
)",
        R"(case "${MODE:-fast}" in
  fast) jobs=«2-16» ;;
  safe) jobs=1 ;;  # «why»
  *) log "unknown mode"; exit 2 ;;
esac
)"}},
  };
  return rules;
}

}  // namespace oscar

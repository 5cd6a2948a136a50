// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Colour-blind readers must be able to tell the colours apart, if necessary by lightness. Colours
// used for text need a contrast ratio of 4.5. Colour alone never carries information.
#include "export/report/page_style.h"

#include <string>

namespace oscar {
namespace {

constexpr std::string_view kPageColours = R"css(
:root{color-scheme:light dark;
--bg:#fff;--fg:#1a1f26;--muted:#59636e;--line:#d8dee4;--faint:#eceff2;--soft:#f6f8fa;
--good:#0a6b52;--bad:#b03a0c;
--s0:#0a5fb4;--s1:#b4480f;--s2:#0b7a5b;--s3:#84409b;--s4:#866203;--s5:#a8315f;--sn:#6c757e;--sr:#1a1f26;
--h0:#fcf3e6;--h1:#fae3c4;--h2:#f5cd9b;--h3:#edb16f;--h4:#e19247;--h5:#b55c1c;--h6:#984613;--h7:#773110;--h8:#531f0c;
--d0:#9fc0e2;--d1:#8bb2da;--d2:#77a3d1;--d3:#6394c7;--d4:#5084bb;--d5:#3f74ae;--d6:#2f639e;--d7:#21528b;--d8:#154176;--d9:#0b305e}
@media screen and (prefers-color-scheme:dark){:root{
--bg:#12161b;--fg:#e4e8ec;--muted:#98a3ae;--line:#333c46;--faint:#232a32;--soft:#1a2027;
--good:#45c9a0;--bad:#ff9361;
--s0:#6fb3fb;--s1:#fb9a61;--s2:#41c79c;--s3:#cf9be3;--s4:#d9b548;--s5:#f48db2;--sn:#98a3ae;--sr:#e4e8ec;
--h0:#221a15;--h1:#382518;--h2:#53331b;--h3:#72431f;--h4:#945623;--h5:#b86d2b;--h6:#d88a41;--h7:#efaa67;--h8:#ffd09c;
--d0:#33537a;--d1:#3d628c;--d2:#48719e;--d3:#5481b0;--d4:#6291c0;--d5:#73a1cf;--d6:#87b2dd;--d7:#9dc3ea;--d8:#b5d4f4;--d9:#d0e5fd}}
)css";

constexpr std::string_view kPageRules = R"css(*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;color:var(--fg);background:var(--bg);
max-width:72rem;margin:0 auto;padding:2rem 1.5rem 3rem;overflow-wrap:anywhere}
h1{font-size:1.75rem;line-height:1.2;margin:.1rem 0 1rem;font-weight:650;letter-spacing:-.01em}
h2{font-size:1.2rem;line-height:1.3;margin:0 0 .75rem;font-weight:650}
h3{font-size:1rem;margin:1.5rem 0 .5rem;font-weight:650}
p{margin:.5rem 0 .75rem;max-width:46rem}
code{font:.9em ui-monospace,"SF Mono","Liberation Mono",monospace}
section{border-top:1px solid var(--line);padding-top:1.25rem;margin-top:2.25rem}
.over{color:var(--muted);font-size:.875rem;margin:0}
.note,footer{color:var(--muted);font-size:.875rem;line-height:1.5}
footer{border-top:1px solid var(--line);margin-top:2.5rem;padding-top:1rem}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:.875rem;margin-top:1.5rem}
nav a,summary{color:var(--s0);text-decoration:none}
nav a:hover{text-decoration:underline}
.verdict{display:flex;align-items:center;gap:.6rem;font-size:1.3rem;font-weight:650;margin:0 0 .5rem}
.verdict span{flex:none;display:grid;place-items:center;width:1.9rem;height:1.9rem;border-radius:50%;color:var(--bg);background:var(--muted);font-size:1.05rem;line-height:1}
.pass{color:var(--good)}.fail{color:var(--bad)}
.verdict.pass span{background:var(--good)}.verdict.fail span{background:var(--bad)}
.lead{font-size:1.0625rem}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:.75rem;margin:1.25rem 0}
.tile{background:var(--soft);border:1px solid var(--faint);border-radius:.5rem;padding:.75rem .9rem}
.tile h3{margin:0;font-size:.875rem;font-weight:500;color:var(--muted)}
.tile .big{font-size:1.75rem;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums;letter-spacing:-.01em;margin:.1rem 0}
.tile .none{color:var(--muted);font-weight:400;font-size:1.1rem;line-height:2}
.tile p{margin:0;color:var(--muted);font-size:.8125rem;line-height:1.45}
.wide{overflow-x:auto;scrollbar-width:thin;margin:.75rem 0 1rem;overflow-wrap:normal}
@media screen{
.wide{display:flex}.wide table{flex:none}
.wide::after{content:"";flex:none;width:2rem;margin-left:-.5rem;position:sticky;right:0;pointer-events:none;background:linear-gradient(to right,transparent,var(--bg))}}
.wide:focus-visible{outline:2px solid var(--s0);outline-offset:2px}
table{border-collapse:collapse;font-size:.875rem;line-height:1.35;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .6rem;text-align:right;border-bottom:1px solid var(--faint);white-space:nowrap;font-weight:400;vertical-align:baseline}
thead th{color:var(--muted);font-size:.8125rem;border-bottom:1px solid var(--line);vertical-align:bottom;white-space:normal;min-width:4.5rem}
th:first-child{text-align:left;padding-left:0;position:sticky;left:0;background:var(--bg);white-space:normal}
th .name{display:block;overflow-wrap:anywhere;padding-left:1.1rem;text-indent:-1.1rem;min-width:13.5rem}
.demand{margin-bottom:0}
tbody tr.headline>*{font-weight:650}
tr.null>*{color:var(--muted)}
td small,th small{display:block;color:var(--muted);font-weight:400;font-size:.75rem}
td.heat{text-align:center;min-width:4rem;border:2px solid var(--bg)}
td.text{text-align:left;white-space:normal}
.swatch{display:inline-block;width:.6rem;height:.6rem;border-radius:50%;background:var(--c);margin-right:.5rem}
.tag{font-size:.75rem;color:var(--muted);border:1px solid var(--line);border-radius:.25rem;padding:0 .3rem;white-space:nowrap;font-weight:400;display:inline-block;text-indent:0}
dl{display:grid;grid-template-columns:fit-content(36%) minmax(0,1fr);gap:.3rem 1.25rem;margin:.75rem 0;font-size:.9375rem}
dt{color:var(--muted)}dd{margin:0;min-width:0}
data{white-space:nowrap}
details{margin:.5rem 0}summary{cursor:pointer;font-size:.9375rem}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:1.75rem 2.5rem;margin:1rem 0}
figure{margin:0;max-width:36rem;min-width:0}
figcaption{font-size:.875rem;line-height:1.45;margin-bottom:.5rem}
figcaption span{display:block;color:var(--muted);font-size:.8125rem}
)css";

// Rules for what is inside an <svg>. --c is the colour of a series.
constexpr std::string_view kChartRules = R"css(svg{display:block;width:100%;height:auto}
svg text{font-size:11.5px;fill:var(--fg);font-family:inherit}
.axis,.axis-title{fill:var(--muted)!important}
.axis{font-variant-numeric:tabular-nums}
svg .middle{text-anchor:middle}svg .end{text-anchor:end}
.label{fill:var(--c)!important}
[class^=d] .label{fill:var(--fg)!important}
.grid{stroke:var(--faint);stroke-width:1}
.base,.tick{stroke:var(--line);stroke-width:1}
.rule{stroke:var(--muted);stroke-width:1;stroke-dasharray:3 3}
.band{fill:var(--faint);opacity:.7}
.leader{stroke:var(--c);stroke-width:.75;fill:none;opacity:.55}
polyline{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.strong polyline{stroke-width:2.75}
.dashed polyline{stroke-dasharray:5 3.5}
.quiet polyline{stroke-width:1.1}.strong.quiet polyline{stroke-width:1.8}
polyline.unseen{stroke:none}
circle{fill:var(--c)}
.ring{fill:var(--bg);stroke:var(--c);stroke-width:1.75}
.whisker{stroke:var(--c);stroke-width:2.5;opacity:.5}
.bar{fill:var(--c)}.second .bar{opacity:.45}
.mark{stroke:var(--fg);stroke-width:2}
.name.strong,.row.strong .name{font-weight:650}
.number{font-variant-numeric:tabular-nums;fill:var(--muted)}
.cell{fill:var(--fg)}.dense{fill:var(--bg)!important}
td.heat.dense{color:var(--bg)}
.s0{--c:var(--s0)}.s1{--c:var(--s1)}.s2{--c:var(--s2)}.s3{--c:var(--s3)}.s4{--c:var(--s4)}.s5{--c:var(--s5)}.sn{--c:var(--sn)}.sr{--c:var(--sr)}
.d0{--c:var(--d0)}.d1{--c:var(--d1)}.d2{--c:var(--d2)}.d3{--c:var(--d3)}.d4{--c:var(--d4)}.d5{--c:var(--d5)}.d6{--c:var(--d6)}.d7{--c:var(--d7)}.d8{--c:var(--d8)}.d9{--c:var(--d9)}
.h0{fill:var(--h0);background:var(--h0)}.h1{fill:var(--h1);background:var(--h1)}.h2{fill:var(--h2);background:var(--h2)}
.h3{fill:var(--h3);background:var(--h3)}.h4{fill:var(--h4);background:var(--h4)}.h5{fill:var(--h5);background:var(--h5)}
.h6{fill:var(--h6);background:var(--h6)}.h7{fill:var(--h7);background:var(--h7)}.h8{fill:var(--h8);background:var(--h8)}
)css";

constexpr std::string_view kMediaRules =
    R"css(@media screen and (max-width:46rem){.tiles{grid-template-columns:1fr 1fr}}
@media(max-width:34rem){
body{padding:1.25rem 1rem 2rem}h1{font-size:1.4rem}
svg text{font-size:12.25px}.row text{font-size:13px}
dl{display:block}dd{margin:0 0 .6rem}
th,td{padding:.4rem .5rem}th:first-child{max-width:9.5rem}th .name{min-width:7.5rem}
.tiles{gap:.5rem}.tile{padding:.6rem .7rem}.tile .big{font-size:1.4rem}}
@media print{
@page{margin:14mm 12mm}
:root{color-scheme:light;font-size:9.5pt}
body{max-width:none;padding:0}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
nav,#settings:has(>details){display:none}
section{margin-top:1rem;padding-top:.75rem}
h2,h3,summary,figcaption{break-after:avoid;break-inside:avoid}
h2::after,h3::after{content:"";display:block;height:9rem;margin-bottom:-9rem}
.tile h3::after{content:none}
figure,.tile,tr,.verdict{break-inside:avoid}
.charts{grid-template-columns:1fr 1fr;gap:1rem 1.5rem}
.wide{overflow:visible}
table{font-size:7pt}th,td{padding:.15rem .25rem}
thead th{font-size:6.5pt;min-width:0}th:first-child{position:static;min-width:0}th .name,td.heat{min-width:0}
td small,th small{font-size:6pt}.tag{font-size:6pt}
table:has(th:nth-child(13)){font-size:5.6pt}table:has(th:nth-child(13)) :is(th,td){padding:.1rem .12rem}
table:has(th:nth-child(13)) :is(thead th,small,.tag){font-size:5.2pt}
.tiles{grid-template-columns:repeat(4,1fr)}
details::details-content{content-visibility:visible;display:block;height:auto}}
)css";

}  // namespace

std::string_view PageStyle() {
  static const std::string style =
      std::string(kPageColours).append(kPageRules).append(kChartRules).append(kMediaRules);
  return style;
}

std::string_view ChartRules() { return kChartRules; }

std::string_view LightColours() {  // the text between the first pair of braces
  return kPageColours.substr(0, kPageColours.find('}') + 1);
}

}  // namespace oscar
